package main

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"operetta.dev/engine/history"
	"operetta.dev/engine/object"
)

// shopRef is the resource that the tests ask about.
var shopRef = object.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}, Namespace: "team-a", Name: "shop"}

// served serves an answer by TLS, and returns the address and a file with the authority of its certificate.
func served(t *testing.T, answer http.HandlerFunc) (address, ca string) {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	ca = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return server.Listener.Addr().String(), ca
}

// asking returns an operator at an address that is asked with a token.
func asking(address, ca string) *operatorClient {
	return &operatorClient{flags: operatorFlags{address: address, ca: ca}, on: target{config: &rest.Config{BearerToken: "t0ken"}}}
}

func TestAnOperatorIsAskedByTLSWithTheCredentialsOfTheUser(t *testing.T) {
	t.Parallel()
	address, ca := served(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.Header.Get("Authorization") != "Bearer t0ken" || r.URL.Path != history.Path || q.Get("group") != "example.com" || q.Get("kind") != "Shop" || q.Get("namespace") != "team-a" || q.Get("name") != "shop" {
			t.Errorf("it is asked %s with %v", r.URL, r.Header)
		}
		_ = json.NewEncoder(w).Encode(history.Report{Total: 7})
	})
	for name, ca := range map[string]string{"on this machine": "", "by an authority": ca} {
		r, err := asking(address, ca).Reconciles(t.Context(), shopRef)
		if err != nil || r.Total != 7 {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

func TestNoCredentialsGoWhereNobodyHasNamedThem(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	thief, _ := served(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	redirecting, ca := served(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+thief+r.URL.Path, http.StatusFound)
	})
	other := filepath.Join(t.TempDir(), "other.crt")
	authority, _, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(plain.Close)
	impersonating := asking(thief, "")
	impersonating.on.config.Impersonate.UserName = "somebody"
	for name, row := range map[string]struct {
		reason string
		by     *operatorClient
		want   string
	}{
		"a redirect":        {"it points to another server", asking(redirecting, ca), "answers 302"},
		"another authority": {"somebody may be between", asking(thief, other), "certificate signed by unknown authority"},
		"without TLS":       {"a token must not travel in clear", asking(plain.Listener.Addr().String(), ""), "does not answer"},
		"as another user":   {"only an API server understands that", impersonating, "leave out the impersonation"},
	} {
		if _, err := row.by.Reconciles(t.Context(), shopRef); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s, because %s: %v", name, row.reason, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests reached a server that must get none", n)
	}
}

func TestWhatIsNoAnswerOfAnOperatorIsSaid(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another server": {http.NotFound, "it is no operator that serves " + history.Path},
		"not served": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "this operator does not serve Shop.example.com", http.StatusNotFound)
		}, "does not serve Shop.example.com"},
		"no report": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "its answer is no report"},
		"without end": {func(w http.ResponseWriter, _ *http.Request) {
			for range 10 << 10 {
				if _, err := w.Write([]byte(strings.Repeat(" ", 1<<10))); err != nil {
					return
				}
			}
		}, "its answer is no report"},
		"a long refusal": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("x", 10_000), http.StatusForbidden)
		}, "answers 403: xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, ca := served(t, row.answer)
			_, err := asking(address, ca).Reconciles(t.Context(), shopRef)
			if err == nil || !strings.Contains(err.Error(), row.want) || len(err.Error()) > 1000 {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestAnOperatorIsAtOnePlace(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		flags operatorFlags
		fails bool
	}{
		"nowhere":      {operatorFlags{}, false},
		"an address":   {operatorFlags{address: "127.0.0.1:8080"}, false},
		"a namespace":  {operatorFlags{namespace: "operetta-system"}, false},
		"both":         {operatorFlags{address: "127.0.0.1:8080", namespace: "operetta-system"}, true},
		"without port": {operatorFlags{address: "127.0.0.1"}, true},
	} {
		if err := row.flags.check(); (err != nil) != row.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
