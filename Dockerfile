# The OpenEnv server: docker build -t sqlenv . && docker run -p 8000:8000 sqlenv
FROM node:20-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
RUN npm ci && npm prune --omit=dev --ignore-scripts

FROM node:20-slim
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
ENV NODE_ENV=production PORT=8000
EXPOSE 8000
HEALTHCHECK --interval=10s --start-period=20s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health`).then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/cli/main.js", "serve", "--host", "0.0.0.0"]
