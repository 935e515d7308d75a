package packages

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"cuelabs.dev/go/oci/ociregistry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"operetta.dev/test/registrytest"
)

// bomb returns a module as a zip file that says it has size bytes in one file.
func bomb(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range map[string]io.Reader{
		"cue.mod/module.cue": strings.NewReader("module: \"example.com/p@v0\"\nlanguage: version: \"v0.17.0\"\n"),
		"ops/p/bomb.cue":     io.LimitReader(zeros{}, int64(size)),
	} {
		f, err := w.Create(name)
		if err == nil {
			_, err = io.Copy(f, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// lyingBomb returns a module as a zip file with a file that is larger than it says.
func lyingBomb(t *testing.T) []byte {
	t.Helper()
	var packed, b bytes.Buffer
	w := zip.NewWriter(&b)
	deflate, err := flate.NewWriter(&packed, flate.BestCompression)
	if err == nil {
		_, err = io.Copy(deflate, io.LimitReader(zeros{}, 100<<20))
	}
	if err = errors.Join(err, deflate.Close()); err != nil {
		t.Fatal(err)
	}
	module, err := w.Create("cue.mod/module.cue")
	if err == nil {
		_, err = io.WriteString(module, "module: \"example.com/p@v0\"\nlanguage: version: \"v0.17.0\"\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.CreateRaw(&zip.FileHeader{Name: "ops/p/bomb.cue", Method: zip.Deflate, CompressedSize64: uint64(packed.Len()), UncompressedSize64: 10})
	if err == nil {
		_, err = f.Write(packed.Bytes())
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// badRegistry is what a registry does to a Package that is served.
type badRegistry struct {
	reason string
	// do is done to the site, and returns the spec to apply.
	do   func(t *testing.T, f *fetchingSite) map[string]any
	want string
	// says is a part of the message.
	says string
	// stalled says that a person has to act.
	stalled bool
}

func badRegistries() map[string]badRegistry {
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "you have sent "+req.Header.Get("Authorization")+" "+registrytest.Password)
		})
	}
	failing := func(h http.Handler) func(*testing.T, *fetchingSite) map[string]any {
		return func(_ *testing.T, f *fetchingSite) map[string]any {
			f.registry.Fail(h)
			return f.spec(":v0.2.0")
		}
	}
	put := func(zip func(*testing.T) []byte) func(*testing.T, *fetchingSite) map[string]any {
		return func(t *testing.T, f *fetchingSite) map[string]any {
			t.Helper()
			f.putRaw(t, zip(t))
			return f.spec(":v0.2.0")
		}
	}
	return map[string]badRegistry{
		"Fails":       {"an error of the registry passes", failing(status(http.StatusInternalServerError)), "RegistryUnavailable", "it has failed (HTTP 500)", false},
		"Forbids":     {"the credentials are not enough", failing(status(http.StatusForbidden)), "RegistryUnauthorized", "(HTTP 403)", true},
		"Unreachable": {"nobody listens", func(_ *testing.T, f *fetchingSite) map[string]any { f.registry.Stop(); return f.spec(":v0.2.0") }, "RegistryUnavailable", "connection refused", false},
		"WantsCredentials": {"there is no pullSecret", func(_ *testing.T, f *fetchingSite) map[string]any {
			spec := f.spec(":v0.2.0")
			delete(spec["source"].(map[string]any)["oci"].(map[string]any), "pullSecret")
			return spec
		}, "RegistryUnauthorized", "(HTTP 401)", true},
		"NoSecret": {"the pullSecret does not exist", func(_ *testing.T, f *fetchingSite) map[string]any {
			return f.spec(":v0.2.0", "pullSecret", "none")
		}, "SourceUnreadable", "pullSecret none: there is no Secret operators/none", true},
		"NoTag": {"the registry has no such tag", func(_ *testing.T, f *fetchingSite) map[string]any { return f.spec(":v0.2.0") }, "SourceNotFound", "it has no such module", true},
		"NoReference": {"it names nothing", func(_ *testing.T, f *fetchingSite) map[string]any {
			return f.spec("", "reference", "no reference!")
		}, "InvalidReference", "is not a reference", true},
		"OtherDigest": {"the digest is that of nothing", func(_ *testing.T, f *fetchingSite) map[string]any {
			return f.spec(":v0.1.0", "digest", string(digest.FromString("other")))
		}, "SourceNotFound", "it has no such module", true},
		"Forged": {"the registry sends another content under the digest, and says that it is right", func(_ *testing.T, f *fetchingSite) map[string]any {
			f.registry.Publish(f.t, "example.com/p@v0.2.0", moduleOf("Thing", "forged"))
			f.registry.Fail(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if strings.Contains(req.URL.Path, "/manifests/") {
					req.URL.Path = "/v2/example.com/p/manifests/v0.2.0"
				}
				f.registry.Serve(w, req)
			}))
			return f.spec("", "reference", f.registry.Host+"/example.com/p@"+string(digest.FromString("other")))
		}, "DigestMismatch", "it has sent sha256:", true},
		"NotAModule": {"the tag is that of an image", func(t *testing.T, f *fetchingSite) map[string]any {
			t.Helper()
			config := []byte("{}")
			desc := f.registry.Blob(t, "example.com/p", ociregistry.Descriptor{Digest: digest.FromBytes(config), MediaType: ocispec.MediaTypeImageConfig, Size: 2}, config)
			f.registry.Manifest(t, "example.com/p", "v0.2.0", ocispec.MediaTypeImageManifest, ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: desc, Layers: []ocispec.Descriptor{}})
			return f.spec(":v0.2.0")
		}, "NotAModule", "is not a CUE module", true},
		"NotAZip":   {"the module is not a zip file", put(func(*testing.T) []byte { return []byte("no zip") }), "NotAModule", "not a zip file", true},
		"ZipBomb":   {"a small file is a large one", put(func(t *testing.T) []byte { t.Helper(); return bomb(t, 100<<20) }), "SourceTooLarge", "more than 33554432 bytes", true},
		"LyingBomb": {"a zip file says that it is small", put(lyingBomb), "NotAModule", "its zip file is broken", true},
		"TooLarge":  {"the registry does not stop sending", put(func(*testing.T) []byte { return bytes.Repeat([]byte("x"), 9<<20) }), "SourceTooLarge", "more than 8388608 bytes", true},
		"NoPackage": {"the folder is not in the module", func(_ *testing.T, f *fetchingSite) map[string]any {
			return f.spec(":v0.1.0", "path", "elsewhere")
		}, "PackageBroken", "elsewhere", true},
		"Escape": {"the folder is not one of the module", func(_ *testing.T, f *fetchingSite) map[string]any {
			return f.spec(":v0.1.0", "path", "../../etc")
		}, "PackageBroken", "it is not a folder of the module", true},
		"Redirects": {"another host gets no credentials, and no plain HTTP leads to it", func(_ *testing.T, f *fetchingSite) map[string]any {
			f.registry.Fail(http.RedirectHandler("http://registry.invalid/v2/example.com/p/manifests/v0.2.0", http.StatusTemporaryRedirect))
			return f.spec(":v0.2.0")
		}, "InvalidReference", "only loopback addresses are", true},
	}
}

// putRaw stores a blob as the zip file of the module at v0.2.0.
func (f *fetchingSite) putRaw(t *testing.T, data []byte) {
	t.Helper()
	const repo = "example.com/p"
	file := []byte("module: \"example.com/p@v0\"\n")
	blob := func(mediaType string, data []byte) ocispec.Descriptor {
		return f.registry.Blob(t, repo, ociregistry.Descriptor{Digest: digest.FromBytes(data), MediaType: mediaType, Size: int64(len(data))}, data)
	}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: blob("application/vnd.cue.module.v1+json", []byte("{}")), Layers: []ocispec.Descriptor{blob("application/zip", data), blob("application/vnd.cue.modulefile.v1", file)}}
	m.SchemaVersion = 2
	f.registry.Manifest(t, repo, "v0.2.0", ocispec.MediaTypeImageManifest, m)
}
