package controller

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

func TestMetricsAreServedToWhoHasTheToken(t *testing.T) {
	t.Parallel()
	const token = "a-token-that-is-long-enough"
	for name, tc := range map[string]struct {
		reason, file, header string
		want                 int
	}{
		"Token":     {"a scraper has it from the same Secret", token + "\n", "Bearer " + token, http.StatusOK},
		"Another":   {"it is not that token", token, "Bearer " + token + "x", http.StatusUnauthorized},
		"Beginning": {"a part of it is not it", token, "Bearer " + token[:20], http.StatusUnauthorized},
		"Nothing":   {"nobody reads without it", token, "", http.StatusUnauthorized},
		"NoScheme":  {"it is a bearer token", token, token, http.StatusUnauthorized},
		"Empty":     {"an empty Secret opens nothing", "", "Bearer ", http.StatusInternalServerError},
		"Short":     {"it could be guessed", "secret", "Bearer secret", http.StatusInternalServerError},
		"Huge":      {"a file may be of any size", strings.Repeat("x", 1<<20), "Bearer " + strings.Repeat("x", 1<<20), http.StatusInternalServerError},
		"Gone":      {"somebody has deleted the Secret", "-", "Bearer -", http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "token")
			if tc.file != "-" {
				if err := os.WriteFile(file, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h := withToken(file, logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
			r.Header.Set("Authorization", tc.header)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Errorf("%s: the code is %d, want %d", tc.reason, w.Code, tc.want)
			}
		})
	}
}

func TestATokenThatIsMissingEndsTheStart(t *testing.T) {
	t.Parallel()
	_, err := New(away, Options{InProcess: true, MetricsAddress: "127.0.0.1:0", MetricsSecure: true, MetricsTokenFile: filepath.Join(t.TempDir(), "token")})
	if err == nil || !strings.Contains(err.Error(), "reading the token") {
		t.Errorf("the error is %v", err)
	}
}
