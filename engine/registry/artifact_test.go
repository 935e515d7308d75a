package registry_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/registry"
	"operetta.dev/test/registrytest"
)

func TestAnArtifactIsFetchedByTagAndByDigest(t *testing.T) {
	t.Parallel()
	r := published(t)
	d := r.Publish(t, "example.com/lib@v0.2.0", lib)
	c := registry.New(registry.Options{Env: r.Env(t)})
	for name, s := range map[string]registry.Source{
		"by tag":                {Reference: r.Host + "/example.com/lib:v0.2.0"},
		"by digest":             {Reference: r.Host + "/example.com/lib@" + d},
		"by a tag that is gone": {Reference: r.Host + "/example.com/lib:gone", Digest: d},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.Credentials = []byte(r.DockerConfig())
			got, err := c.Fetch(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			want := "example.com/lib@v0.2.0"
			if name != "by tag" {
				want = "example.com/lib@v0.0.0" // nobody says which version it is
			}
			if got.Digest != d || got.Module != want {
				t.Errorf("%s %s", got.Digest, got.Module)
			}
			if _, err := fs.Stat(got.Files, "names/names.cue"); err != nil {
				t.Error(err)
			}
			s.Known = d
			if again, err := c.Fetch(t.Context(), s); err != nil || again.Digest != d || again.Files != nil {
				t.Errorf("what is known was fetched again: %v", err)
			}
		})
	}
}

func TestARegistryWithATokenServerIsFetchedFrom(t *testing.T) {
	t.Parallel()
	r := published(t)
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if user, password, _ := req.BasicAuth(); user != registrytest.User || password != registrytest.Password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"token": "one-time"}`)
	}))
	t.Cleanup(tokens.Close)
	r.Fail(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer one-time" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+tokens.URL+`",service="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.Serve(w, req)
	}))
	c := registry.New(registry.Options{Env: []string{"HOME=" + t.TempDir()}})
	s := registry.Source{Reference: r.Host + "/example.com/lib:v0.1.2", Credentials: []byte(r.DockerConfig())}
	if _, err := c.Fetch(t.Context(), s); err != nil {
		t.Error(err)
	}
	s.Credentials = nil
	_, err := c.Fetch(t.Context(), s)
	if got, ok := errors.AsType[*registry.Error](err); !ok || got.Code != registry.Unauthorized {
		t.Errorf("without credentials: %v", err)
	}
}

func TestARegistryThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	r := published(t)
	r.Fail(http.HandlerFunc(registrytest.Hang))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := registry.New(registry.Options{Env: r.Env(t)}).Fetch(ctx, registry.Source{Reference: r.Host + "/example.com/lib:v0.1.2"})
	if got, ok := errors.AsType[*registry.Error](err); !ok || got.Code != registry.TimedOut || !got.Transient() {
		t.Errorf("%v", err)
	}
}

func TestPlainHTTPIsForThisMachineAlone(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	want := map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1:5000": true, "[::1]:5000": true, "127.9.9.9": true,
		"localhost.evil.test": false, "127.0.0.1.evil.test": false, "10.0.0.1": false, "169.254.169.254": false, "registry.test": false, "0.0.0.0": false,
	}
	for host := range want {
		got[host] = registry.IsLoopback(host)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
