/** nginx as a yardstick: one process that replaces the key, keeps connections to the upstream and buffers nothing. */
export const nginxConfig = ({ port, upstreamUrl, upstreamKey, directory }) => `
daemon off;
master_process off;
pid ${directory}/nginx.pid;
error_log ${directory}/nginx-error.log;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path ${directory}/nginx-bodies;
  proxy_temp_path ${directory}/nginx-proxy;
  fastcgi_temp_path ${directory}/nginx-fastcgi;
  uwsgi_temp_path ${directory}/nginx-uwsgi;
  scgi_temp_path ${directory}/nginx-scgi;
  client_max_body_size 64m;
  keepalive_requests 1000000000;
  upstream bench { server ${new URL(upstreamUrl).host}; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location = /health/ready { return 200; }
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Authorization "Bearer ${upstreamKey}";
      proxy_buffering off;
      proxy_request_buffering off;
    }
  }
}
`
