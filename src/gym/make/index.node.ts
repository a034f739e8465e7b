// Makes data sets from SQLite files, CSV files and PostgreSQL; these need Node.
export { type MakeDataSetOptions, makeDataSet } from "./make.node.ts";
