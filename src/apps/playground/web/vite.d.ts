// The type of vite's `?worker&url` imports.
declare module "*?worker&url" {
  const url: string;
  export default url;
}
