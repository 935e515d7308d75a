package controller

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whoever can connect to the port of the webhooks can send anything to each of them.
func TestEachWebhookHasTheSameLimits(t *testing.T) {
	t.Parallel()
	m, err := New(away, Options{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	handlers := webhookHandlers(m)
	if diff := cmp.Diff([]string{"/convert", "/mutate", "/validate", "/validate-patches"}, slices.Sorted(maps.Keys(handlers))); diff != "" {
		t.Errorf("the paths (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		reason, method, kind string
		body                 []byte
		code                 int
	}{
		"a method":       {"reviews are posted", http.MethodGet, "application/json", nil, http.StatusMethodNotAllowed},
		"a content type": {"a browser could send it otherwise", http.MethodPost, "text/plain", []byte("{}"), http.StatusUnsupportedMediaType},
		"no review":      {"there is nothing to answer", http.MethodPost, "application/json", []byte(`{"kind":"Pod"}`), http.StatusBadRequest},
		"a huge one":     {"memory has a limit", http.MethodPost, "application/json", bytes.Repeat([]byte(" "), 64<<20), http.StatusRequestEntityTooLarge},
		"nested":         {"nesting has a limit", http.MethodPost, "application/json", []byte(strings.Repeat("[", 100_000)), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string]int{}
			want := map[string]int{}
			for path, h := range handlers {
				req := httptest.NewRequestWithContext(t.Context(), tc.method, path, bytes.NewReader(tc.body))
				req.Header.Set("Content-Type", tc.kind)
				answer := httptest.NewRecorder()
				h.ServeHTTP(answer, req)
				got[path], want[path] = answer.Code, tc.code
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
