# The OpenEnv server: docker build -t sqlenv . && docker run -p 8000:8000 -e SQLENV_API_KEY=secret sqlenv
# It writes nothing, so add --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges, or use compose.yaml.
# The base image follows Node's major version, so that a rebuild gets its security updates. For reproducible builds,
# set NODE_IMAGE to a digest (docker buildx imagetools inspect node:24-slim).
ARG NODE_IMAGE=node:24-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY LICENSE tsconfig.json tsconfig.build.json vite.dashboard.config.ts vite.playground.config.ts ./
COPY scripts scripts
COPY src src
COPY models models
# The server uses the bundled model in models/, so the page's own copy is not needed.
RUN npm run build && rm -rf dist/web/playground/model dist/.tsbuildinfo
RUN npm prune --omit=dev --ignore-scripts

FROM ${NODE_IMAGE}
ENV NODE_ENV=production PORT=8000
WORKDIR /app
COPY --from=build /app/LICENSE ./
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/models models
COPY --from=build /app/dist dist
USER node
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health`).then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/apps/cli/main.js", "serve", "--host", "0.0.0.0"]
