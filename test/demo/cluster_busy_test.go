package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

func TestAnAPIServerThatIsBusyForAMomentIsAskedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "proxy"))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	server := &httptest.Server{Listener: socket, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch {
		case r.URL.Path == "/busy" && asked == 1:
			w.WriteHeader(http.StatusTooManyRequests)
		case r.URL.Path == "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			fmt.Fprint(w, `{"n": 1}`)
		}
	})}}
	server.Start()
	defer server.Close()
	c := connect("kubectl", "none", dir)
	var got struct{ N int }
	if err := c.get(t.Context(), "/busy", &got); err != nil || got.N != 1 || asked != 2 {
		t.Errorf("it got %d after %d requests, error %v", got.N, asked, err)
	}
	if err := c.get(t.Context(), "/broken", &got); err == nil || asked != 3 {
		t.Errorf("what is broken was asked %d times, error %v", asked-2, err)
	}
}
