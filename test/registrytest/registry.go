// Package registrytest runs OCI registries in the process of a test: they hold modules in memory, and serve them
// over HTTP on an address of this machine, with authentication. They can be made to fail as registries do.
package registrytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ocimem"
	"cuelang.org/go/mod/modcache"
	"cuelang.org/go/mod/modregistry"
	"cuelang.org/go/mod/module"
	"cuelang.org/go/mod/modzip"
	"golang.org/x/tools/txtar"
	"operetta.dev/test/registrytest/memory"
)

// The credentials that registries want.
const (
	User     = "reader"
	Password = "hunter2-of-the-registry"
)

// A Registry is a registry that runs.
type Registry struct {
	// Host is its address.
	Host string
	// Store has its content.
	Store *ocimem.Registry

	server *httptest.Server

	mu       sync.Mutex
	requests []*http.Request
	fail     http.Handler
}

// New starts a registry, which ends with the test. With anonymous, it wants no credentials.
func New(tb testing.TB, anonymous bool) *Registry {
	tb.Helper()
	r := &Registry{Store: ocimem.New()}
	user := User
	if anonymous {
		user = ""
	}
	serve := memory.Handler(r.Store, user, Password)
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.requests = append(r.requests, req.Clone(context.WithoutCancel(req.Context())))
		fail := r.fail
		r.mu.Unlock()
		if fail != nil {
			fail.ServeHTTP(w, req)
			return
		}
		serve.ServeHTTP(w, req)
	}))
	tb.Cleanup(r.Stop)
	r.Host = r.server.Listener.Addr().String()
	return r
}

// Stop ends a registry, with the requests that it has not answered.
func (r *Registry) Stop() {
	r.server.CloseClientConnections()
	r.server.Close()
}

// Fail has a handler answer all requests from now on; nil ends that.
func (r *Registry) Fail(h http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = h
}

// Serve answers a request as a registry does that wants no credentials.
func (r *Registry) Serve(w http.ResponseWriter, req *http.Request) {
	memory.Handler(r.Store, "", "").ServeHTTP(w, req)
}

// Hang answers nothing until the client goes away.
func Hang(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }

// Requests returns the requests since they were taken last.
func (r *Registry) Requests() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.requests
	r.requests = nil
	return out
}

// DockerConfig returns the configuration of Docker with the credentials of the registry.
func (r *Registry) DockerConfig() string {
	out, err := json.Marshal(map[string]any{"auths": map[string]any{r.Host: map[string]any{"username": User, "password": Password}}})
	if err != nil {
		panic(err)
	}
	return string(out)
}

// Env returns the environment in which the cue command uses the registry, with an empty cache.
func (r *Registry) Env(tb testing.TB) []string {
	tb.Helper()
	home, err := os.MkdirTemp("", "registrytest-") //nolint:usetesting // the folders of the cache are read-only, so that the test could not remove them
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = modcache.RemoveAll(home) })
	docker := filepath.Join(home, "docker")
	if err := os.MkdirAll(docker, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(docker, "config.json"), []byte(r.DockerConfig()), 0o600); err != nil {
		tb.Fatal(err)
	}
	return []string{
		"CUE_REGISTRY=" + r.Host, "CUE_CACHE_DIR=" + filepath.Join(home, "cache"), "CUE_CONFIG_DIR=" + filepath.Join(home, "config"),
		"DOCKER_CONFIG=" + docker, "HOME=" + home, "PATH=" + os.Getenv("PATH"),
	}
}

// Publish publishes a module, such as example.com/lib@v0.1.2, whose files are a txtar archive, and returns
// its digest.
func (r *Registry) Publish(tb testing.TB, version, archive string) string {
	tb.Helper()
	return r.PublishZip(tb, version, Zip(tb, version, archive))
}

// PublishZip is Publish for a module as a zip file.
func (r *Registry) PublishZip(tb testing.TB, version string, zip []byte) string {
	tb.Helper()
	v := module.MustParseVersion(version)
	ctx := context.Background()
	if err := modregistry.NewClient(r.Store).PutModule(ctx, v, bytes.NewReader(zip), int64(len(zip))); err != nil {
		tb.Fatal(err)
	}
	d, err := r.Store.ResolveTag(ctx, v.BasePath(), v.Version())
	if err != nil {
		tb.Fatal(err)
	}
	return string(d.Digest)
}

// Zip returns a module as a zip file.
func Zip(tb testing.TB, version, archive string) []byte {
	tb.Helper()
	fsys, err := txtar.FS(txtar.Parse([]byte(archive)))
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	if err := os.CopyFS(dir, fsys); err != nil {
		tb.Fatal(err)
	}
	var b bytes.Buffer
	if err := modzip.CreateFromDir(&b, module.MustParseVersion(version), dir); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// PublishTree publishes a module with the files of a file system, such as the schemas.
func (r *Registry) PublishTree(tb testing.TB, version string, fsys fs.FS) string {
	tb.Helper()
	var archive strings.Builder
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		fmt.Fprintf(&archive, "-- %s --\n%s\n", name, data)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return r.Publish(tb, version, archive.String())
}

// Manifest stores a manifest under a tag, and returns its digest. It may be none of a module.
func (r *Registry) Manifest(tb testing.TB, repo, tag, mediaType string, manifest any) string {
	tb.Helper()
	data, err := json.Marshal(manifest)
	if err != nil {
		tb.Fatal(err)
	}
	d, err := r.Store.PushManifest(context.Background(), repo, tag, data, mediaType)
	if err != nil {
		tb.Fatal(err)
	}
	return string(d.Digest)
}

// Blob stores a blob, and returns its descriptor.
func (r *Registry) Blob(tb testing.TB, repo string, desc ociregistry.Descriptor, data []byte) ociregistry.Descriptor {
	tb.Helper()
	out, err := r.Store.PushBlob(context.Background(), repo, desc, bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	return out
}
