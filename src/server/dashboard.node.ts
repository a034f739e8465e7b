// The dashboard for programs: as a handler, behind a port of its own, as a file.
export { type ExportedPage, exportDashboard } from "./dashboard-export.node.ts";
export { type DashboardOptions, dashboardHandler, type Handler } from "./dashboard-handler.node.ts";
export { type DashboardServer, type ServeDashboardOptions, serveDashboard } from "./dashboard-serve.node.ts";
