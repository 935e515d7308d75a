package registry_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"operetta.dev/engine/registry"
	"operetta.dev/engine/signature"
	"operetta.dev/engine/source"
	"operetta.dev/test/registrytest"
)

const libRepository = "example.com/lib"

// keys returns the public keys of some.
func keys(t *testing.T, all ...registrytest.Key) signature.Keys {
	t.Helper()
	var out signature.Keys
	for _, k := range all {
		key, err := signature.ParseKey(k.Public)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, key)
	}
	return out
}

// signing is a registry with an artifact that a test signs in some way.
type signing struct {
	*registrytest.Registry

	t      *testing.T
	digest string
	key    registrytest.Key
}

// payload returns what is signed of the artifact.
func (s signing) payload() []byte { return registrytest.Payload(s.Host+"/"+libRepository, s.digest) }

func TestOnlyWhatOneOfTheKeysHasSignedIsFetched(t *testing.T) {
	t.Parallel()
	other, old := registrytest.NewKey(t), registrytest.NewKey(t)
	elsewhere := string(digest.FromString("elsewhere"))
	for name, tc := range map[string]struct {
		reason string
		sign   func(s signing)
		code   registry.Code
		says   string // "" is that it is fetched
	}{
		"Tag": {"cosign sign --key has signed it", func(s signing) { s.Sign(s.t, s.key, libRepository, s.digest) }, 0, ""},
		"Bundle": {"a newer cosign has signed it", func(s signing) {
			s.Refer(s.t, libRepository, s.digest, s.key.Bundle(s.t, registrytest.SignPredicate, s.digest))
		}, 0, ""},
		"Rotated": {"one of several keys is enough", func(s signing) { s.Sign(s.t, old, libRepository, s.digest) }, 0, ""},
		"AmongOthers": {"others may sign it, too, and put there what they like", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, registrytest.Signature{Text: []byte("no payload"), Made: "!"}, other.Signed(s.t, s.payload()), s.key.Signed(s.t, s.payload()))
		}, 0, ""},
		"TagOfSomethingElse": {"the tag of signatures has none, and a bundle is right", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest)
			s.Refer(s.t, libRepository, s.digest, s.key.Bundle(s.t, registrytest.SignPredicate, s.digest))
		}, 0, ""},
		"AmongMuchElse": {"scanners may put there what they like, and as much of it", func(s signing) {
			for i := range 400 {
				s.ReferAs(s.t, libRepository, s.digest, "application/spdx+json", fmt.Appendf(nil, `{"report": %d}`, i))
			}
			s.Refer(s.t, libRepository, s.digest, s.key.Bundle(s.t, registrytest.SignPredicate, s.digest))
		}, 0, ""},
		"WithTag": {"the signature names the tag that was signed", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, s.key.Signed(s.t, registrytest.Payload(s.Host+"/"+libRepository+":v0.2.0", s.digest)))
		}, 0, ""},

		"Unsigned": {"nobody has signed it", func(signing) {}, registry.Unsigned, "it has no signature of sha256:"},
		"NoLayers": {"a tag of signatures without one is no signature", func(s signing) { s.SignTag(s.t, libRepository, s.digest) }, registry.Unsigned, "no signature"},
		"OtherKey": {"somebody else has signed it", func(s signing) { s.Sign(s.t, other, libRepository, s.digest) }, registry.BadSignature, "1 was made with another key"},
		"Changed": {"the payload was changed after it was signed", func(s signing) {
			made := s.key.Signed(s.t, registrytest.Payload(s.Host+"/"+libRepository, elsewhere))
			made.Text = s.payload()
			s.SignTag(s.t, libRepository, s.digest, made)
		}, registry.BadSignature, "another key"},
		"OtherDigest": {"the signature of an older artifact was moved", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, s.key.Signed(s.t, registrytest.Payload(s.Host+"/"+libRepository, elsewhere)))
		}, registry.BadSignature, "1 is of another digest"},
		"OtherRepository": {"the artifact was copied with its signature from a repository for tests", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, s.key.Signed(s.t, registrytest.Payload(s.Host+"/example.com/sandbox", s.digest)))
		}, registry.BadSignature, "1 is for another repository"},
		"OtherRegistry": {"the same repository of another registry is another one", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, s.key.Signed(s.t, registrytest.Payload("registry.test/"+libRepository, s.digest)))
		}, registry.BadSignature, "1 is for another repository"},
		"NoRepository": {"a signature for no repository would be good for each", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, s.key.Signed(s.t, registrytest.Payload("", s.digest)))
		}, registry.BadSignature, "1 is for another repository"},
		"OtherType": {"what is signed is no signature of an artifact", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, s.key.Signed(s.t, bytes.Replace(s.payload(), []byte("cosign container image"), []byte("something"), 1)))
		}, registry.BadSignature, "1 cannot be read"},
		"NoBase64": {"the signature is no text of one", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, registrytest.Signature{Text: s.payload(), Made: "\x00"})
		}, registry.BadSignature, "1 cannot be read"},
		"Empty": {"the signature is empty", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, registrytest.Signature{Text: s.payload(), Made: ""})
		}, registry.BadSignature, "1 cannot be read"},
		"Huge": {"a payload of some megabytes is not read, even if it is signed", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, s.key.Signed(s.t, append(s.payload(), bytes.Repeat([]byte(" "), 1<<20)...)))
		}, registry.BadSignature, "1 cannot be read"},
		"HugeSignature": {"nor a signature of that size", func(s signing) {
			s.SignTag(s.t, libRepository, s.digest, registrytest.Signature{Text: s.payload(), Made: base64.StdEncoding.EncodeToString(make([]byte, 1<<20))})
		}, registry.BadSignature, "1 cannot be read"},
		"Buried": {"whoever may push cannot have thousands of signatures looked at", func(s signing) {
			all := make([]registrytest.Signature, 0, 1001)
			for range 1000 {
				all = append(all, registrytest.Signature{Text: s.payload(), Made: "eA=="})
			}
			s.SignTag(s.t, libRepository, s.digest, append(all, s.key.Signed(s.t, s.payload()))...)
		}, registry.BadSignature, "50 was made with another key, no more than 50 are looked at"},
		"BundleOfOtherKey": {"somebody else has made the bundle", func(s signing) {
			s.Refer(s.t, libRepository, s.digest, other.Bundle(s.t, registrytest.SignPredicate, s.digest))
		}, registry.BadSignature, "another key"},
		"BundleOfOtherDigest": {"the bundle of another artifact refers to it", func(s signing) {
			s.Refer(s.t, libRepository, s.digest, s.key.Bundle(s.t, registrytest.SignPredicate, elsewhere))
		}, registry.BadSignature, "1 is of another digest"},
		"Attestation": {"the key has said what is in it, not that it is good", func(s signing) {
			s.Refer(s.t, libRepository, s.digest, s.key.Bundle(s.t, "https://spdx.dev/Document", s.digest))
		}, registry.Unsigned, "no signature"},
		"BrokenBundle": {"the bundle cannot be read", func(s signing) { s.Refer(s.t, libRepository, s.digest, []byte(`{"mediaType": 1`)) }, registry.BadSignature, "1 cannot be read"},
		"HugeBundle": {"a bundle of some megabytes is not read", func(s signing) {
			s.Refer(s.t, libRepository, s.digest, append(s.key.Bundle(s.t, registrytest.SignPredicate, s.digest), bytes.Repeat([]byte(" "), 1<<20)...))
		}, registry.BadSignature, "1 cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := signing{Registry: published(t), t: t, key: registrytest.NewKey(t)}
			s.digest = s.Publish(t, "example.com/lib@v0.2.0", lib)
			tc.sign(s)
			from := registry.Source{Reference: s.Host + "/" + libRepository + ":v0.2.0", Credentials: []byte(s.DockerConfig()), Keys: keys(t, old, s.key)}
			got, err := registry.New(registry.Options{}).Fetch(t.Context(), from)
			if tc.says != "" {
				own, ok := errors.AsType[*registry.Error](err)
				if !ok || own.Code != tc.code || own.Transient() || !strings.Contains(own.Problem, tc.says) {
					t.Errorf("%s: %v, want %q", tc.reason, err, tc.says)
				}
				return
			}
			if err != nil || got.Verified == nil || len(got.Verified.Keys) != 1 || !from.Keys.Has(got.Verified.Keys[0]) || got.Verified.Digest != s.digest {
				t.Errorf("%s: %+v %v", tc.reason, got, err)
			}
		})
	}
}

func TestEachKindOfKeyThatCosignHasIsVerified(t *testing.T) {
	t.Parallel()
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	factors, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]registrytest.Key{"P-256": registrytest.NewKey(t), "P-384": registrytest.KeyOf(t, large), "RSA": registrytest.KeyOf(t, factors), "Ed25519": registrytest.KeyOf(t, edwards)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			public := keys(t, key)
			signer, err := signature.ParseSigner([]byte(key.Private), nil)
			if err != nil {
				t.Fatal(err)
			}
			of := signature.Artifact{Repository: "registry.test/a/b", Digest: string(digest.FromString("a"))}
			text, made, err := signer.Sign(t.Context(), of)
			if err != nil {
				t.Fatal(err)
			}
			if result, id := public.Payload(of, text, made); result != signature.Valid || id != public[0].ID || id != signer.Key.ID {
				t.Errorf("it %s, by %q", result, id)
			}
			text[len(text)-1] ^= 1
			if result, _ := public.Payload(of, text, made); result != signature.OtherKey {
				t.Errorf("with one bit changed, it %s", result)
			}
		})
	}
}

func TestWhatIsNotVerifiedIsNotDownloaded(t *testing.T) {
	t.Parallel()
	r := published(t)
	r.Publish(t, "example.com/lib@v0.2.0", lib)
	r.Requests()
	_, err := registry.New(registry.Options{}).Fetch(t.Context(), registry.Source{Reference: r.Host + "/" + libRepository + ":v0.2.0", Credentials: []byte(r.DockerConfig()), Keys: keys(t, registrytest.NewKey(t))})
	if err == nil {
		t.Fatal("it was fetched")
	}
	for _, req := range r.Requests() {
		if strings.Contains(req.URL.Path, "/blobs/") {
			t.Errorf("%s", req.URL.Path)
		}
	}
}

func TestARegistryThatFailsOnlyForSignaturesIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		answer http.HandlerFunc
		code   registry.Code
	}{
		"Hangs":         {"nobody knows whether there is a signature", registrytest.Hang, registry.TimedOut},
		"Fails":         {"nor here", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, registry.Failed},
		"Refuses":       {"a person has to give the right", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, registry.Unauthorized},
		"NoEnd":         {"what does not end is given up", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, io.LimitReader(endless{}, 20<<20)) }, registry.Failed},
		"NotJSON":       {"what is no manifest is no signature", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, registry.BadSignature},
		"DoesNotKnowIt": {"a registry without referrers may say so", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }, registry.Unsigned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := published(t)
			path := ".sig"
			if name == "DoesNotKnowIt" {
				path = "/referrers/"
			}
			r.Fail(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if strings.Contains(req.URL.Path, path) {
					tc.answer(w, req)
					return
				}
				r.Serve(w, req)
			}))
			ctx := t.Context()
			if name == "Hangs" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			}
			_, err := registry.New(registry.Options{}).Fetch(ctx, registry.Source{Reference: r.Host + "/example.com/lib:v0.1.2", Keys: keys(t, registrytest.NewKey(t))})
			if own, ok := errors.AsType[*registry.Error](err); !ok || own.Code != tc.code {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestTheStricterOfThePolicyAndTheCallerWins(t *testing.T) {
	t.Parallel()
	ours, theirs := registrytest.NewKey(t), registrytest.NewKey(t)
	for name, tc := range map[string]struct {
		reason string
		policy string
		own    []registrytest.Key
		signed []registrytest.Key
		code   registry.Code
		ok     bool
	}{
		"Both":        {"each of the two is content", "keys", []registrytest.Key{theirs}, []registrytest.Key{ours, theirs}, 0, true},
		"PolicyOnly":  {"the keys of a Package are not those of the policy", "keys", []registrytest.Key{theirs}, []registrytest.Key{theirs}, registry.BadSignature, false},
		"CallerOnly":  {"nor the other way round", "keys", []registrytest.Key{theirs}, []registrytest.Key{ours}, registry.BadSignature, false},
		"NoneOfOwn":   {"a Package without keys does not weaken the policy", "keys", nil, nil, registry.Unsigned, false},
		"Same":        {"one signature is enough for both", "keys", []registrytest.Key{ours}, []registrytest.Key{ours}, 0, true},
		"Allowed":     {"the policy lets a repository be, and the Package does not", "allow", []registrytest.Key{theirs}, nil, registry.Unsigned, false},
		"AllowedAlso": {"neither asks for a signature", "allow", nil, nil, 0, true},
		"Elsewhere":   {"a repository without a rule is refused, whatever the Package says", "elsewhere", []registrytest.Key{theirs}, []registrytest.Key{theirs}, registry.NotAllowed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := published(t)
			d := r.Publish(t, "example.com/lib@v0.2.0", lib)
			var all []registrytest.Signature
			for _, k := range tc.signed {
				all = append(all, k.Signed(t, registrytest.Payload(r.Host+"/"+libRepository, d)))
			}
			if all != nil {
				r.SignTag(t, libRepository, d, all...)
			}
			client := registry.New(registry.Options{Policy: policyOf(t, tc.policy, r.Host, ours)})
			r.Requests()
			got, err := client.Fetch(t.Context(), registry.Source{Reference: r.Host + "/" + libRepository + ":v0.2.0", Credentials: []byte(r.DockerConfig()), Keys: keys(t, tc.own...)})
			own, _ := errors.AsType[*registry.Error](err)
			if (err == nil) != tc.ok || err != nil && own.Code != tc.code {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if tc.code == registry.NotAllowed && len(r.Requests()) > 0 {
				t.Errorf("%s: the registry was asked", tc.reason)
			}
			if err != nil {
				return
			}
			if err := client.CheckVerified(*got.Verified, keys(t, tc.own...)); err != nil {
				t.Errorf("what was verified is not remembered: %v", err)
			}
			if err := client.CheckVerified(*got.Verified, keys(t, registrytest.NewKey(t))); err == nil {
				t.Error("it counts as verified by a key that has not signed it")
			}
		})
	}
}

// policyOf returns one of the policies of a test.
func policyOf(t *testing.T, kind, host string, key registrytest.Key) *signature.Policy {
	t.Helper()
	text := map[string]string{
		"keys":      "repositories:\n- match: " + host + "/**\n  keys:\n  - |\n    " + strings.ReplaceAll(key.Public, "\n", "\n    ") + "\n",
		"allow":     "repositories:\n- match: " + host + "/example.com/*\n  unsigned: Allow\n",
		"elsewhere": "repositories:\n- match: registry.test/**\n  unsigned: Allow\n",
	}[kind]
	out, err := signature.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestADependencyHasToBeSignedAsWell(t *testing.T) {
	t.Parallel()
	r := published(t)
	key := registrytest.NewKey(t)
	d := r.Publish(t, "example.com/lib@v0.2.0", lib)
	env := r.Env(t)
	// It is in the cache, where nothing says what was signed.
	if _, err := registry.New(registry.Options{Env: env}).Module("example.com/lib@v0", "v0.2.0"); err != nil {
		t.Fatal(err)
	}
	for name, modules := range map[string]source.Modules{
		"ThePolicySaysSo":  registry.New(registry.Options{Env: env, Policy: policyOf(t, "keys", r.Host, key)}),
		"ThePackageSaysSo": registry.New(registry.Options{Env: env}).Modules(keys(t, key)),
	} {
		_, err := modules.Module("example.com/lib@v0", "v0.2.0")
		if own, ok := errors.AsType[*registry.Error](err); !ok || own.Code != registry.Unsigned {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.Sign(t, key, libRepository, d)
	modules := registry.New(registry.Options{Env: env, Policy: policyOf(t, "keys", r.Host, key)}).Modules(keys(t, key))
	files, err := modules.Module("example.com/lib@v0", "v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(files, "names/names.cue"); err != nil {
		t.Error(err)
	}
	want := []registry.Verified{{Repository: r.Host + "/" + libRepository, Digest: d, Keys: keys(t, key).IDs()}}
	if diff := cmp.Diff(want, modules.Verified()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAModuleWithoutARegistryIsNotTakenFromTheCacheIfItHasToBeSigned(t *testing.T) {
	t.Parallel()
	r := published(t)
	env := r.Env(t)
	if _, err := registry.New(registry.Options{Env: env}).Module("example.com/lib@v0", "v0.1.2"); err != nil {
		t.Fatal(err)
	}
	key := registrytest.NewKey(t)
	env = append(env, "CUE_REGISTRY=none")
	for name, modules := range map[string]source.Modules{
		"ThePolicySaysSo":  registry.New(registry.Options{Env: env, Policy: policyOf(t, "keys", r.Host, key)}),
		"ThePackageSaysSo": registry.New(registry.Options{Env: env}).Modules(keys(t, key)),
	} {
		_, err := modules.Module("example.com/lib@v0", "v0.1.2")
		if own, ok := errors.AsType[*registry.Error](err); !ok || own.Code != registry.NotAllowed {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := registry.New(registry.Options{Env: env}).Modules(nil).Module("example.com/lib@v0", "v0.1.2"); err != nil {
		t.Errorf("nothing has to be signed: %v", err)
	}
}

func TestAnotherModuleIsNotADependencyBecauseItIsSigned(t *testing.T) {
	t.Parallel()
	r := published(t)
	key := registrytest.NewKey(t)
	d := r.Publish(t, "example.com/other@v0.2.0", strings.ReplaceAll(lib, "example.com/lib", "example.com/other"))
	r.Refer(t, "example.com/other", d, key.Bundle(t, registrytest.SignPredicate, d)) // which names no repository
	r.Fail(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.URL.Path = strings.Replace(req.URL.Path, "/example.com/lib/", "/example.com/other/", 1)
		r.Serve(w, req)
	}))
	_, err := registry.New(registry.Options{Env: r.Env(t)}).Modules(keys(t, key)).Module("example.com/lib@v0", "v0.2.0")
	if own, ok := errors.AsType[*registry.Error](err); !ok || own.Code != registry.NotModule || !strings.Contains(own.Problem, "it has sent example.com/other@v0.2.0 in place of example.com/lib@v0.2.0") {
		t.Errorf("%v", err)
	}
}
