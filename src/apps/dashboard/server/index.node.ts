// The dashboard for programs: as a request handler, as a server, as an exported file.
export { type ExportedPage, exportDashboard } from "./export.node.ts";
export { type DashboardOptions, dashboardHandler, type Handler } from "./handler.node.ts";
export { type DashboardServer, type ServeDashboardOptions, serveDashboard } from "./serve.node.ts";
