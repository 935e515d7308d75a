package packages

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
	"operetta.dev/engine/signature"
	"operetta.dev/engine/status"
	"operetta.dev/test/registrytest"
)

const moduleRepository = "example.com/p"

// signed returns the spec of a Package whose module needs a signature of one of some keys.
func (f *fetchingSite) signed(tag string, keys ...registrytest.Key) map[string]any {
	var public []any
	for _, k := range keys {
		public = append(public, k.Public)
	}
	spec := f.spec(tag)
	spec["source"].(map[string]any)["oci"].(map[string]any)["verify"] = map[string]any{"keys": public}
	return spec
}

// publish publishes another version of the module, and returns its digest.
func (f *fetchingSite) publish(version, name string) string {
	f.t.Helper()
	return f.registry.Publish(f.t, "example.com/p@"+version, moduleOf("Thing", name))
}

// policyOf makes a policy with a rule for the registry, to which more is added.
func (f *fetchingSite) policyOf(key registrytest.Key, more string) *signature.Policy {
	f.t.Helper()
	out, err := signature.ParsePolicy([]byte("repositories:\n- match: " + f.registry.Host + "/**\n  keys:\n  - |\n    " + strings.ReplaceAll(key.Public, "\n", "\n    ") + "\n" + more))
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// expect errors unless a Package has a reason and serves a version; its message has some parts.
func (f *fetchingSite) expect(what, ready, served string, says ...string) {
	f.t.Helper()
	got := ""
	if s := f.states["p"]; s != nil && s.served != nil {
		got = s.served.Digest()
	}
	if f.ready("p") != ready || got != served {
		f.t.Errorf("%s: %s, %q is served, want %s and %q: %s", what, f.ready("p"), got, ready, served, f.message())
	}
	for _, part := range says {
		if !strings.Contains(f.message(), part) {
			f.t.Errorf("%s: %q is not in %s", what, part, f.message())
		}
	}
}

// digestServed returns the version that is served.
func (f *fetchingSite) digestServed() string { return f.states["p"].served.Digest() }

func TestWhatIsNotSignedChangesNothing(t *testing.T) {
	t.Parallel()
	key, other := registrytest.NewKey(t), registrytest.NewKey(t)
	for name, tc := range map[string]struct {
		reason string
		sign   func(f *fetchingSite, digest string)
		want   string
		says   string
	}{
		"Unsigned": {"nobody has signed it", func(*fetchingSite, string) {}, "Unsigned", "it has no signature of sha256:"},
		"WrongKey": {"somebody else has", func(f *fetchingSite, d string) { f.registry.Sign(f.t, other, moduleRepository, d) }, "SignatureInvalid", "1 was made with another key"},
		"Moved": {"the signature is that of the version before", func(f *fetchingSite, d string) {
			f.registry.SignTag(f.t, moduleRepository, d, key.Signed(f.t, registrytest.Payload(f.registry.Host+"/"+moduleRepository, f.digest)))
		}, "SignatureInvalid", "1 is of another digest"},
		"Replayed": {"it was signed for a repository for tests", func(f *fetchingSite, d string) {
			f.registry.SignTag(f.t, moduleRepository, d, key.Signed(f.t, registrytest.Payload(f.registry.Host+"/example.com/sandbox", d)))
		}, "SignatureInvalid", "1 is for another repository"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetchingSite(t)
			f.registry.Sign(t, key, moduleRepository, f.digest)
			f.apply("p", f.signed(":v0.1.0", key))
			f.step()
			served := f.digestServed()
			f.expect("signed", "True Served", served)
			by, _, _ := unstructured.NestedStringSlice(f.get("p").Object, "status", "artifact", "signedBy")
			public, err := signature.ParseKey(key.Public)
			if diff := cmp.Diff([]string{public.ID}, by); diff != "" || err != nil {
				t.Errorf("signed by (-want +got):\n%s%v", diff, err)
			}
			f.take()
			tc.sign(f, f.publish("v0.2.0", "evil"))
			f.apply("p", f.signed(":v0.2.0", key))
			f.step()
			f.expect(tc.reason, "False "+tc.want, served, tc.says, served+" is served")
			before, _, _ := unstructured.NestedMap(f.get("p").Object, "status")
			if status.Condition(before, status.ConditionStalled) == nil {
				t.Error("nobody is told to act")
			}
			if strings.Contains(f.message(), "after a restart") {
				t.Errorf("the last good version was verified: %s", f.message())
			}
			for _, call := range f.take() {
				if !strings.HasPrefix(call, "outdated: ") {
					t.Errorf("%s", call)
				}
			}
			f.restart()
			f.step()
			f.expect("after a restart", "False "+tc.want, served)
			f.noSecrets()
			// A signature that comes later is noticed, without a change of the Package.
			d, err := f.registry.Store.ResolveTag(t.Context(), moduleRepository, "v0.2.0")
			if err != nil {
				t.Fatal(err)
			}
			f.registry.Sign(t, key, moduleRepository, string(d.Digest))
			f.now = f.now.Add(time.Minute)
			f.step()
			if f.ready("p") != "True Served" || f.digestServed() == served {
				t.Errorf("once it is signed: %s: %s", f.ready("p"), f.message())
			}
		})
	}
}

func TestWhatWasVerifiedOutlivesTheRegistryAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	key, next := registrytest.NewKey(t), registrytest.NewKey(t)
	for name, tc := range map[string]struct {
		reason string
		// first is the Package that is served, and then the one that is there when the registry is away.
		first, then func(f *fetchingSite) map[string]any
		policy      string
		serves      bool
		says        string
	}{
		"Same":        {"it was verified by that key", func(f *fetchingSite) map[string]any { return f.signed(":v0.1.0", key) }, func(f *fetchingSite) map[string]any { return f.signed(":v0.1.0", key) }, "", true, ""},
		"KeyAdded":    {"a key more is one that could have signed, too", func(f *fetchingSite) map[string]any { return f.signed(":v0.1.0", key) }, func(f *fetchingSite) map[string]any { return f.signed(":v0.1.0", next, key) }, "", true, ""},
		"OtherKey":    {"nobody knows whether the new key has signed it", func(f *fetchingSite) map[string]any { return f.signed(":v0.1.0", key) }, func(f *fetchingSite) map[string]any { return f.signed(":v0.1.0", next) }, "", false, "was not verified by the keys"},
		"NowDemanded": {"nobody has looked for a signature", func(f *fetchingSite) map[string]any { return f.spec(":v0.1.0") }, func(f *fetchingSite) map[string]any { return f.signed(":v0.1.0", key) }, "", false, "its signatures were not verified"},
		"NowPolicy":   {"a policy of the operator is not weaker", func(f *fetchingSite) map[string]any { return f.spec(":v0.1.0") }, func(f *fetchingSite) map[string]any { return f.spec(":v0.1.0") }, "registry", false, "its signatures were not verified"},
		"PolicyToo":   {"it was verified by a key of the policy", func(f *fetchingSite) map[string]any { return f.signed(":v0.1.0", key) }, func(f *fetchingSite) map[string]any { return f.spec(":v0.1.0") }, "registry", true, ""},
		"NotAnyMore":  {"who may write the Package may ask for less", func(f *fetchingSite) map[string]any { return f.signed(":v0.1.0", key) }, func(f *fetchingSite) map[string]any { return f.spec(":v0.1.0") }, "", true, ""},
		"Object":      {"a content of an object is none that was signed", func(*fetchingSite) map[string]any { return text("Thing", "a") }, func(f *fetchingSite) map[string]any { return f.signed(":v0.1.0", key) }, "", false, "its signatures were not verified"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetchingSite(t)
			f.registry.Sign(t, key, moduleRepository, f.digest)
			f.apply("p", tc.first(f))
			f.step()
			served := f.digestServed()
			f.registry.Fail(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
			f.apply("p", tc.then(f))
			f.step()
			// Whatever is known, what runs goes on until the process ends.
			if f.states["p"].served == nil {
				t.Fatalf("%s: in the same process, nothing is served: %s", tc.reason, f.message())
			}
			if warned := strings.Contains(f.message(), "after a restart, "+served+" is not served any more"); warned == tc.serves && tc.policy == "" {
				t.Errorf("%s: nobody is told what a restart does: %s", tc.reason, f.message())
			}
			if tc.policy != "" {
				f.policy = f.policyOf(key, "")
			}
			f.restart()
			f.step()
			if !tc.serves {
				served = ""
			}
			f.expect(tc.reason, "False RegistryUnavailable", served, tc.says)
			if told := strings.Contains(strings.Join(f.take(), "\n"), "broken p: "); told == tc.serves {
				t.Errorf("%s: the resources are told that nothing is served: %t", tc.reason, told)
			}
		})
	}
}

func TestAKeyIsRotatedWithoutAnotherContent(t *testing.T) {
	t.Parallel()
	old, next := registrytest.NewKey(t), registrytest.NewKey(t)
	f := newFetchingSite(t)
	f.registry.Sign(t, old, moduleRepository, f.digest)
	f.apply("p", f.signed(":v0.1.0", old))
	f.step()
	served := f.digestServed()
	f.apply("p", f.signed(":v0.1.0", next))
	f.step()
	f.expect("signed by the old key alone", "False SignatureInvalid", served, "after a restart, "+served+" is not served any more")
	f.restart()
	f.step()
	f.expect("after a restart", "False SignatureInvalid", "", "nothing is served")
	f.take()
	f.registry.SignTag(t, moduleRepository, f.digest, old.Signed(t, registrytest.Payload(f.registry.Host+"/"+moduleRepository, f.digest)), next.Signed(t, registrytest.Payload(f.registry.Host+"/"+moduleRepository, f.digest)))
	f.now = f.now.Add(time.Minute)
	f.step()
	f.expect("signed by both", "True Served", served)
	// The revision is the same one, and says who has signed it by now.
	f.registry.Stop()
	f.restart()
	f.step()
	f.expect("without the registry", "False RegistryUnavailable", served)
	revisions, err := f.memory.ListLive(t.Context(), cluster.Selection{Kind: RevisionKind, Labels: map[string]string{crd.PackageLabel: "p"}})
	if err != nil || len(revisions) != 1 {
		t.Errorf("%d revisions, %v", len(revisions), err)
	}
}

func TestANewDemandIsMetWithoutAnInterruption(t *testing.T) {
	t.Parallel()
	key := registrytest.NewKey(t)
	f := newFetchingSite(t)
	f.registry.Sign(t, key, moduleRepository, f.digest)
	f.apply("p", f.spec(":v0.1.0"))
	f.step()
	served := f.digestServed()
	f.take()
	f.apply("p", f.signed(":v0.1.0", key))
	f.step()
	f.expect("signed", "True Served", served)
	if calls := f.take(); len(calls) > 0 {
		t.Errorf("%q", calls)
	}
	writes := len(f.registry.Requests())
	for range 20 {
		f.step()
	}
	if n := len(f.registry.Requests()); n > 0 || writes == 0 {
		t.Errorf("%d requests at rest, %d before", n, writes)
	}
	f.registry.Stop()
	f.restart()
	f.step()
	f.expect("without the registry", "False RegistryUnavailable", served)
}

// What was accepted last is not served when more is demanded. The next content must not wait until it is.
func TestWhatIsSignedDoesNotWaitForWhatIsNotAcceptedAnyMore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		add    func(spec map[string]any)
		ready  string
		says   string
	}{
		"Limits": {"all that it would delete counts", func(spec map[string]any) { withLimits(spec, map[string]any{"maxDelete": int64(1)}) }, "True Served", ""},
		"Canary": {"there is nothing to go back to, and a person decides", func(spec map[string]any) { spec["canary"] = map[string]any{"share": "10%"} }, "False CanaryIncompatible", "remove spec.canary"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := registrytest.NewKey(t)
			f := newFetchingSite(t)
			spec := func(tag string) map[string]any {
				out := f.spec(tag)
				tc.add(out)
				return out
			}
			f.apply("p", spec(":v0.1.0"))
			f.step()
			f.digestServed()
			f.registry.Sign(t, key, moduleRepository, f.publish("v0.2.0", "b"))
			f.policy = f.policyOf(key, "")
			f.restart()
			f.apply("p", spec(":v0.2.0"))
			f.step()
			for range 3 {
				f.now = f.now.Add(time.Hour)
				f.step()
			}
			if got := f.ready("p"); got != tc.ready || !strings.Contains(f.message(), tc.says) {
				t.Errorf("%s: %s: %s", tc.reason, got, f.message())
			}
		})
	}
}

func TestNoPackageWeakensThePolicyOfTheOperator(t *testing.T) {
	t.Parallel()
	key, own := registrytest.NewKey(t), registrytest.NewKey(t)
	for name, tc := range map[string]struct {
		reason string
		more   string
		spec   func(f *fetchingSite) map[string]any
		want   string
		says   string
	}{
		"Unsigned": {"the Package asks for nothing", "", func(f *fetchingSite) map[string]any { return f.spec(":v0.1.0") }, "False Unsigned", "no signature"},
		"OwnKey": {"the Package brings a key of its own", "", func(f *fetchingSite) map[string]any {
			f.registry.Sign(f.t, own, moduleRepository, f.digest)
			return f.signed(":v0.1.0", own)
		}, "False SignatureInvalid", "no signature"},
		"Inline":  {"an object of the cluster is signed by nobody", "", func(*fetchingSite) map[string]any { return text("Thing", "a") }, "False SourceNotAllowed", "allows only content from registries"},
		"Allowed": {"the policy allows it", "otherSources: Allow\n", func(*fetchingSite) map[string]any { return text("Thing", "a") }, "True Served", ""},
		"Elsewhere": {"the policy has no rule for the registry", "", func(f *fetchingSite) map[string]any {
			return f.spec("", "reference", "registry.test/example.com/p:v0.1.0")
		}, "False SourceNotAllowed", "no rule of --require-signatures is about registry.test/example.com/p"},
		"Signed": {"it is signed by the key of the policy", "", func(f *fetchingSite) map[string]any {
			f.registry.Sign(f.t, key, moduleRepository, f.digest)
			return f.spec(":v0.1.0")
		}, "True Served", ""},
		"Dependency": {"what an object of the cluster depends on comes from a registry", "otherSources: Allow\n", func(f *fetchingSite) map[string]any {
			f.registry.Publish(f.t, "example.com/lib@v0.1.0", "\n-- cue.mod/module.cue --\nmodule: \"example.com/lib@v0\"\nlanguage: version: \"v0.17.0\"\n-- names/names.cue --\npackage names\n\n#Name: \"note\"\n")
			spec := text("Thing", "a")
			files := spec["source"].(map[string]any)["inline"].(map[string]any)
			files["cue.mod/module.cue"] = "module: \"example.com/inline@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: \"example.com/lib@v0\": v: \"v0.1.0\"\n"
			files["main.cue"] = strings.Replace(files["main.cue"].(string), "operator\"\n", "operator\"\nimport \"example.com/lib/names\"\n", 1) + "_x: names.#Name\n"
			return spec
		}, "False Unsigned", "module example.com/lib@v0.1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetchingSite(t)
			f.policy = f.policyOf(key, tc.more)
			f.restart()
			f.apply("p", tc.spec(f))
			f.step()
			if got := f.ready("p"); got != tc.want || !strings.Contains(f.message(), tc.says) {
				t.Errorf("%s: %s: %s", tc.reason, got, f.message())
			}
			if served := f.states["p"].served != nil; served != strings.HasPrefix(tc.want, "True") {
				t.Errorf("%s: served %t", tc.reason, served)
			}
		})
	}
}

func TestTheNoteOfARevisionThatSaysNothingIsNotBelieved(t *testing.T) {
	t.Parallel()
	key := registrytest.NewKey(t)
	for name, note := range map[string]string{
		"no JSON": "yes", "null": "null", "nothing": "{}", "no keys": `{"artifacts":[{"repository":"r.test/p","digest":"sha256:0"}]}`,
		"another key": `{"artifacts":[{"repository":"r.test/p","digest":"sha256:0","keys":["sha256:0"]}]}`, "an object": `{"object":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetchingSite(t)
			f.registry.Sign(t, key, moduleRepository, f.digest)
			f.apply("p", f.signed(":v0.1.0", key))
			f.step()
			revisions, err := f.memory.ListLive(t.Context(), cluster.Selection{Kind: RevisionKind, Labels: map[string]string{crd.PackageLabel: "p"}})
			if err != nil || len(revisions) != 1 {
				t.Fatal(err)
			}
			u := revisions[0]
			annotations := u.GetAnnotations()
			annotations[provenanceAnnotation] = note
			u.SetAnnotations(annotations)
			if _, err := f.memory.Put("kubectl", u); err != nil {
				t.Fatal(err)
			}
			f.registry.Stop()
			f.restart()
			f.step()
			f.expect(name, "False RegistryUnavailable", "")
		})
	}
}

func TestAResourceIsNotPinnedToWhatWasNotVerified(t *testing.T) {
	t.Parallel()
	key := registrytest.NewKey(t)
	f := newFetchingSite(t)
	f.resources = []Resource{resource("one", "")}
	f.apply("p", pinning(f.spec(":v0.1.0")))
	f.step()
	unsigned := f.digestServed()
	f.resources[0].Pin = unsigned
	f.registry.Sign(t, key, moduleRepository, f.publish("v0.2.0", "b"))
	f.apply("p", pinning(f.signed(":v0.2.0", key)))
	f.step()
	if f.digestServed() == unsigned || f.pins.Programs[unsigned] != nil || !strings.Contains(f.pins.Why(unsigned), "its signatures are not those that are demanded") {
		t.Errorf("%s: %q", f.message(), f.pins.Why(unsigned))
	}
}

func TestARegistryThatHangsForSignaturesHoldsNothingUp(t *testing.T) {
	t.Parallel()
	key := registrytest.NewKey(t)
	f := newFetchingSite(t)
	f.registry.Sign(t, key, moduleRepository, f.digest)
	f.apply("p", f.signed(":v0.1.0", key))
	f.step()
	served := f.digestServed()
	asked := make(chan struct{}, 10)
	f.registry.Fail(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, ".sig") {
			asked <- struct{}{}
			registrytest.Hang(w, req)
			return
		}
		f.registry.Serve(w, req)
	}))
	f.publish("v0.2.0", "b")
	f.apply("p", f.signed(":v0.2.0", key))
	if err := f.site.step("p"); err != nil {
		t.Fatal(err)
	}
	<-asked
	if f.states["p"].fetch == nil || f.states["p"].fetch.ended() {
		t.Error("the step has waited for the signature")
	}
	f.expect("while it hangs", "False Fetching", served)
	f.states["p"].fetch.cancel()
	f.step()
	f.expect("when it is given up", "False RegistryUnavailable", served)
}

func TestAKeyThatCannotBeReadIsAMistakeInTheSpec(t *testing.T) {
	t.Parallel()
	key := registrytest.NewKey(t)
	f := newFetchingSite(t)
	f.apply("p", f.signed(":v0.1.0", registrytest.Key{Public: key.Private}))
	f.step()
	if got := f.ready("p"); got != "False InvalidSpec" || !strings.Contains(f.message(), "source.oci.verify.keys: key 1: it is not a public key") {
		t.Errorf("%s: %s", got, f.message())
	}
	if strings.Contains(f.message(), strings.Split(key.Private, "\n")[1]) {
		t.Error("the private key is in the message")
	}
}
