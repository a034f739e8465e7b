// What vite makes of an import with a query.
declare module "*?worker&url" {
  const url: string;
  export default url;
}
