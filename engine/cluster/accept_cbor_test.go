package cluster_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"operetta.dev/engine/cluster"
)

// both is what a client sends that accepts CBOR.
const bothTypes = "application/json;q=0.9,application/cbor;q=1"

// Who answers decides about the encoding, and nobody who refuses CBOR can keep a request from being answered.
func TestARequestThatAcceptsCBORIsAnsweredInAnyCase(t *testing.T) {
	t.Parallel()
	const half = "\xd9\xd9\xf7\xa1Aa\xf9\x38\x00" // {"a": 0.5}
	for name, row := range map[string]struct {
		reason string
		// code and body are the answer to whoever accepts CBOR, of a content type.
		code       int
		typed      string
		body       string
		method     string
		ctxReads   bool
		path       string
		wantBodies []string
		wantAsked  []string
	}{
		"offered": {
			"numbers are those of JSON", 200, "application/cbor", "\xd9\xd9\xf7\xa1Aa\xf9\x3c\x00", http.MethodGet, false, "/apis/a/v1/b",
			[]string{"\xd9\xd9\xf7\xa1Aa\x1b\x00\x00\x00\x00\x00\x00\x00\x01", "\xd9\xd9\xf7\xa1Aa\x1b\x00\x00\x00\x00\x00\x00\x00\x01"}, []string{bothTypes, bothTypes},
		},
		"read by the caller": {"it is as it came", 200, "application/cbor", half, http.MethodGet, true, "/apis/a/v1/b", []string{half, half}, []string{bothTypes, bothTypes}},
		"not offered":        {"as before", 200, "application/json", "{}", http.MethodGet, false, "/apis/a/v1/b", []string{"{}", "{}"}, []string{bothTypes, bothTypes}},
		"refused":            {"it is asked for JSON, then and from then on", 406, "text/plain", "no", http.MethodGet, true, "/apis/a/v1/b", []string{"JSON ", "JSON "}, []string{bothTypes, "application/json", "application/json"}},
		"unsupported":        {"the same, with the body of the request", 415, "text/plain", "no", http.MethodPatch, false, "/apis/a/v1/b", []string{"JSON body", "JSON body"}, []string{bothTypes, "application/json", "application/json"}},
		"garbage":            {"the same", 200, "application/cbor", "\xa1\x1c", http.MethodGet, false, "/apis/a/v1/b", []string{"JSON ", "JSON "}, []string{bothTypes, "application/json", "application/json"}},
		"garbage of a write": {"it may have been done, so it is not sent again", 200, "application/cbor", "\xa1\x1c", http.MethodPatch, false, "/apis/a/v1/b", []string{"\xa1\x1c", "\xa1\x1c"}, []string{bothTypes, bothTypes}},
		"another watch":      {"nobody changes its events", 200, "application/cbor-seq", half, http.MethodGet, false, "/apis/a/v1/b?watch=true", []string{"JSON ", "JSON "}, []string{"application/json", "application/json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, bodies []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Header.Get("Accept"))
				if !strings.Contains(r.Header.Get("Accept"), "cbor") {
					sent, _ := io.ReadAll(r.Body)
					_, _ = io.WriteString(w, "JSON "+string(sent))
					return
				}
				w.Header().Set("Content-Type", row.typed)
				w.WriteHeader(row.code)
				_, _ = io.WriteString(w, row.body)
			}))
			t.Cleanup(server.Close)
			httpClient, err := rest.HTTPClientFor(cluster.AcceptCBOR(&rest.Config{Host: server.URL}))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				ctx, body := t.Context(), io.Reader(http.NoBody)
				if row.ctxReads {
					ctx = cluster.ReadsCBOR(ctx)
				}
				if row.method == http.MethodPatch {
					body = strings.NewReader("body")
				}
				request, err := http.NewRequestWithContext(ctx, row.method, server.URL+row.path, body)
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Accept", bothTypes)
				answer, err := httpClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				bodies = append(bodies, string(got))
			}
			if diff := cmp.Diff(row.wantBodies, bodies); diff != "" {
				t.Errorf("%s: the answers are (-want +got):\n%s", row.reason, diff)
			}
			if diff := cmp.Diff(row.wantAsked, asked); diff != "" {
				t.Errorf("%s: the requests accept (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
