// Package memory serves what a registry in memory holds over HTTP, to those who have its credentials. It is for the
// registries of tests, and for that of the demo, which is a process of its own.
package memory

import (
	"crypto/subtle"
	"net/http"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ociserver"
)

// Handler serves a registry to those who authenticate with a user and a password. Without a user, it serves everybody.
func Handler(store ociregistry.Interface, user, password string) http.Handler {
	serve := ociserver.New(store, nil)
	if user == "" {
		return serve
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		gotUser, gotPassword, _ := req.BasicAuth()
		if gotUser != user || subtle.ConstantTimeCompare([]byte(gotPassword), []byte(password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(w, req)
	})
}
