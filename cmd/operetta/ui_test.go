package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"operetta.dev/engine/explain"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ui"
)

// noResources are the resources of a cluster that has none.
type noResources struct{}

func (noResources) List(context.Context) ([]explain.Resource, error) { return nil, nil }

func (noResources) Explain(context.Context, object.Ref) (explain.Resource, error) {
	return explain.Resource{}, nil
}

// TestPagesAreServedAsABrowserAsksForThem asks with the header Host that a browser makes of the address.
func TestPagesAreServedAsABrowserAsksForThem(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, port, host string
		want               int
	}{
		"the address":                         {"it is the one that is printed", "8080", "127.0.0.1:8080", http.StatusOK},
		"the name":                            {"it means the same machine", "8080", "localhost:8080", http.StatusOK},
		"the address on the default port":     {"a browser leaves the port out", "80", "127.0.0.1", http.StatusOK},
		"the name on the default port":        {"a browser leaves the port out", "80", "localhost", http.StatusOK},
		"the default port, written":           {"another client may write it", "80", "127.0.0.1:80", http.StatusOK},
		"no port, and not the default one":    {"it is another page", "8080", "127.0.0.1", http.StatusForbidden},
		"another name on the default port":    {"a page of the web that has a name for this address reads nothing", "80", "evil.example.com", http.StatusForbidden},
		"another port than that of the pages": {"it is another page", "80", "127.0.0.1:8080", http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Host = row.host
			ui.New(ui.Options{Source: noResources{}, Hosts: uiHosts(row.port)}).ServeHTTP(w, r)
			if w.Code != row.want {
				t.Errorf("%s: the code is %d, want %d", row.reason, w.Code, row.want)
			}
		})
	}
}
