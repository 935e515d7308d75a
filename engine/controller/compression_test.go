package controller

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

func TestAManagerAsksForNoCompressedAnswers(t *testing.T) {
	t.Parallel()
	var accepted []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		accepted = append(accepted, r.Header.Get("Accept-Encoding"))
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	given := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	for _, config := range []*rest.Config{given, clientConfig(given)} {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	if len(accepted) != 2 || accepted[0] != "gzip" || accepted[1] != "" {
		t.Errorf("a client and that of a manager accept %q", accepted)
	}
}
