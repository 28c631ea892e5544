// The yardstick of another language: the reverse proxy of Go's standard library, which only replaces the key and reads nothing.
// Environment: PORT, UPSTREAM, UPSTREAM_KEY.
package main

import (
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

func main() {
	upstream, err := url.Parse(os.Getenv("UPSTREAM"))
	if err != nil {
		log.Fatal(err)
	}
	authorization := "Bearer " + os.Getenv("UPSTREAM_KEY")
	proxy := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(upstream)
			request.Out.Header.Set("Authorization", authorization)
		},
		Transport: &http.Transport{MaxIdleConnsPerHost: 1024},
	}
	http.HandleFunc("/health/ready", func(http.ResponseWriter, *http.Request) {})
	http.Handle("/", proxy)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
