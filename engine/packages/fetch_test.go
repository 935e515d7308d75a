package packages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"operetta.dev/engine/registry"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/signature"
	"operetta.dev/engine/status"
	"operetta.dev/test/machine"
	"operetta.dev/test/registrytest"
)

// pullSecret has the credentials of the registry of a test under the name "good".
type pullSecret struct{ config string }

func (p pullSecret) PullSecret(_ context.Context, name string) ([]byte, error) {
	if name == "good" {
		return []byte(p.config), nil
	}
	return nil, fmt.Errorf("there is no Secret operators/%s", name)
}

// moduleOf returns a module with the package of text, in a folder.
func moduleOf(kind, name string) string {
	inline := text(kind, name)["source"].(map[string]any)["inline"].(map[string]any)["main.cue"].(string)
	return "\n-- cue.mod/module.cue --\nmodule: \"example.com/p@v0\"\nlanguage: version: \"v0.17.0\"\n-- ops/p/main.cue --\n" + inline
}

// fetchingSite is a site with a registry that has the module at v0.1.0.
type fetchingSite struct {
	*site

	registry *registrytest.Registry
	digest   string
	events   []string
	// policy is what the operator demands of signatures.
	policy *signature.Policy
}

func newFetchingSite(t *testing.T) *fetchingSite {
	t.Helper()
	f := &fetchingSite{site: newSite(t), registry: registrytest.New(t, false)}
	f.digest = f.registry.Publish(t, "example.com/p@v0.1.0", moduleOf("Thing", "a"))
	f.restart()
	return f
}

// Record implements Recorder.
func (f *fetchingSite) Record(_ *unstructured.Unstructured, e rollout.Event) {
	f.events = append(f.events, e.Reason+": "+e.Message)
}

func (f *fetchingSite) restart() {
	f.site.restart()
	f.Reconciler.Registries = registry.New(registry.Options{Env: f.registry.Env(f.t), Now: func() time.Time { return f.now }, Policy: f.policy})
	f.Reconciler.Secrets = pullSecret{f.registry.DockerConfig()}
	f.Reconciler.Recorder = f
}

// spec returns the spec of a Package of the registry.
func (f *fetchingSite) spec(tag string, more ...string) map[string]any {
	oci := map[string]any{"reference": f.registry.Host + "/example.com/p" + tag, "path": "ops/p", "pullSecret": "good"}
	for i := 0; i < len(more); i += 2 {
		oci[more[i]] = more[i+1]
	}
	return map[string]any{"source": map[string]any{"oci": oci}}
}

// step takes the Package p as far as it goes, through what it fetches.
func (f *fetchingSite) step() {
	f.t.Helper()
	for {
		if err := f.site.step("p"); err != nil {
			f.t.Fatal(err)
		}
		s := f.states["p"]
		if s == nil || s.fetch == nil {
			return
		}
		select {
		case <-f.enqueue:
		case <-time.After(time.Minute):
			f.t.Fatal("a fetch does not end")
		}
	}
}

func (f *fetchingSite) status(fields ...string) string {
	f.t.Helper()
	out, _, err := unstructured.NestedString(f.get("p").Object, append([]string{"status"}, fields...)...)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// message returns the message of the condition Ready.
func (f *fetchingSite) message() string {
	before, _, _ := unstructured.NestedMap(f.get("p").Object, "status")
	return status.Condition(before, status.ConditionReady).Message
}

func TestAPackageIsFetchedFromARegistry(t *testing.T) {
	t.Parallel()
	f := newFetchingSite(t)
	f.apply("p", f.spec(":v0.1.0"))
	f.step()
	if got := f.ready("p"); got != "True Served" {
		t.Fatalf("%s: %s", got, f.message())
	}
	if got := f.status("artifact", "digest"); got != f.digest {
		t.Errorf("artifact %s, want %s", got, f.digest)
	}
	if got := f.status("artifact", "module"); got != "example.com/p@v0.1.0" {
		t.Errorf("module %s", got)
	}
	if f.status("sourceDigest") == "" || f.status("sourceDigest") != f.status("digest") {
		t.Errorf("source digest %q, digest %q", f.status("sourceDigest"), f.status("digest"))
	}
}

func TestATagIsAskedForAgainAfterAWhileAndADigestIsNot(t *testing.T) {
	t.Parallel()
	for name, pinned := range map[string]bool{"a tag": false, "a digest": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetchingSite(t)
			spec := f.spec(":v0.1.0")
			if pinned {
				spec = f.spec(":v0.1.0", "digest", f.digest)
			}
			f.apply("p", spec)
			f.step()
			f.registry.Requests()
			for range 20 {
				f.step()
			}
			if n := len(f.registry.Requests()); n > 0 {
				t.Errorf("%d requests at rest", n)
			}
			f.registry.Publish(t, "example.com/p@v0.1.0", moduleOf("Thing", "b"))
			f.now = f.now.Add(tagAgain + tagAgain/5)
			f.step()
			asked, swapped := len(f.registry.Requests()) > 0, strings.Contains(strings.Join(f.take(), " "), "swap Thing")
			if asked == pinned || swapped == pinned {
				t.Errorf("asked %t, swapped %t: %s", asked, swapped, f.message())
			}
		})
	}
}

func TestThePausesBetweenQuestionsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 100 {
		d := jitter(tagAgain)
		if d < tagAgain*9/10 || d >= tagAgain*11/10 {
			t.Fatalf("%s", d)
		}
		seen[d] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d different pauses", len(seen))
	}
}

func TestNothingThatARegistryDoesChangesWhatRuns(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	for name, tc := range badRegistries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetchingSite(t)
			f.apply("p", f.spec(":v0.1.0"))
			f.step()
			served := f.status("digest")
			f.take()
			f.apply("p", tc.do(t, f))
			f.step()
			if got := f.ready("p"); got != "False "+tc.want || !strings.Contains(f.message(), tc.says) || !strings.Contains(f.message(), served+" is served") {
				t.Errorf("%s: %s: %s", tc.reason, got, f.message())
			}
			before, _, _ := unstructured.NestedMap(f.get("p").Object, "status")
			if stalled := status.Condition(before, status.ConditionStalled) != nil; stalled != tc.stalled {
				t.Errorf("%s: stalled %t", tc.reason, stalled)
			}
			if f.status("digest") != served || f.ServedBy(f.states["p"].served.GroupVersionKind().GroupKind()) == "" {
				t.Errorf("%s: %s is served, not %s", tc.reason, f.status("digest"), served)
			}
			for _, call := range f.take() {
				if !strings.HasPrefix(call, "outdated: ") {
					t.Errorf("%s: %s", tc.reason, call)
				}
			}
			f.restart()
			f.step()
			if f.status("digest") != served {
				t.Errorf("%s: after a restart %q is served, not %s: %s", tc.reason, f.status("digest"), served, f.message())
			}
			f.noSecrets()
		})
	}
}

// noSecrets errors if what others can read has the credentials.
func (f *fetchingSite) noSecrets() {
	f.t.Helper()
	object, err := json.Marshal(f.get("p").Object)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, text := range append(f.events, string(object)) {
		if strings.Contains(text, registrytest.Password) || strings.Contains(text, "Basic ") {
			f.t.Errorf("the credentials are in %s", text)
		}
	}
}

func TestARegistryThatHangsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	f := newFetchingSite(t)
	f.apply("p", f.spec(":v0.1.0"))
	f.step()
	served := f.status("digest")
	f.registry.Fail(http.HandlerFunc(registrytest.Hang))
	f.restart()
	if err := f.site.step("p"); err != nil {
		t.Fatal(err)
	}
	if f.states["p"].fetch == nil || f.states["p"].fetch.ended() {
		t.Error("the step has waited for the registry")
	}
	if got := f.ready("p"); got != "False Fetching" || f.status("digest") != served {
		t.Errorf("%s, %q is served: %s", got, f.status("digest"), f.message())
	}
	// The end of the Package, or another source, ends the fetch.
	hanging := f.states["p"].fetch
	f.apply("p", text("Thing", "b"))
	if err := f.site.step("p"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hanging.done:
	case <-time.After(time.Minute):
		t.Fatal("the fetch goes on")
	}
	if got := f.ready("p"); got != "True Served" {
		t.Errorf("%s: %s", got, f.message())
	}
}

func TestAnOutageEndsByItself(t *testing.T) {
	t.Parallel()
	f := newFetchingSite(t)
	f.registry.Fail(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	f.apply("p", f.spec(":v0.1.0"))
	f.step()
	if got := f.ready("p"); got != "False RegistryUnavailable" {
		t.Fatalf("%s: %s", got, f.message())
	}
	for range 50 {
		f.step()
	}
	if n := len(f.registry.Requests()); n > 4 {
		t.Errorf("%d requests without a pause", n)
	}
	f.registry.Fail(nil)
	f.now = f.now.Add(time.Minute)
	f.step()
	if got := f.ready("p"); got != "True Served" {
		t.Errorf("%s: %s", got, f.message())
	}
}

func TestAnotherHostGetsNoCredentials(t *testing.T) {
	t.Parallel()
	f := newFetchingSite(t)
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got = append(got, req.Header.Get("Authorization"))
		f.registry.Serve(w, req)
	}))
	t.Cleanup(other.Close)
	f.registry.Fail(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, _, ok := req.BasicAuth(); !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.Redirect(w, req, other.URL+req.URL.Path, http.StatusTemporaryRedirect)
	}))
	f.apply("p", f.spec(":v0.1.0"))
	f.step()
	if diff := cmp.Diff([]string{"", ""}, got); diff != "" || f.ready("p") != "True Served" {
		t.Errorf("%s: %s; credentials (-want +got):\n%s", f.ready("p"), f.message(), diff)
	}
}

func TestAModuleBeyondTheTimeOfItsPackageIsNotFetched(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := newFetchingSite(t)
	modules := within{ctx, f.Registries}
	if _, err := modules.Module("example.com/p@v0", "v0.1.0"); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err := modules.Module("example.com/p@v0", "v0.1.0")
	if wrong := notFetched(err); wrong.reason != ReasonRegistryUnavailable || !wrong.passes {
		t.Errorf("%v: %+v", err, wrong)
	}
}

func TestAHelperThatASecretNamesIsNotRun(t *testing.T) {
	dir := t.TempDir()
	ran := dir + "/ran"
	if err := os.WriteFile(dir+"/docker-credential-evil", []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	f := newFetchingSite(t)
	f.Reconciler.Secrets = pullSecret{`{"credsStore": "evil", "credHelpers": {"` + f.registry.Host + `": "evil"}}`}
	f.apply("p", f.spec(":v0.1.0"))
	f.step()
	if got := f.ready("p"); got == "True Served" {
		t.Error("it was fetched without credentials")
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Error("the helper has run")
	}
}

func TestAnInlinePackageGetsItsDependenciesBesideTheSteps(t *testing.T) {
	t.Parallel()
	f := newFetchingSite(t)
	f.registry.Publish(t, "example.com/lib@v0.1.0", "\n-- cue.mod/module.cue --\nmodule: \"example.com/lib@v0\"\nlanguage: version: \"v0.17.0\"\n-- names/names.cue --\npackage names\n\n#Name: \"note\"\n")
	spec := text("Thing", "a")
	files := spec["source"].(map[string]any)["inline"].(map[string]any)
	files["cue.mod/module.cue"] = "module: \"example.com/inline@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: \"example.com/lib@v0\": v: \"v0.1.0\"\n"
	files["main.cue"] = strings.Replace(files["main.cue"].(string), "operator\"\n", "operator\"\nimport \"example.com/lib/names\"\n", 1) + "_x: names.#Name\n"
	f.apply("p", spec)
	f.step()
	if got := f.ready("p"); got != "True Served" {
		t.Fatalf("%s: %s", got, f.message())
	}
	served := f.status("digest")
	f.registry.Stop()
	for range 20 {
		f.step()
	}
	if got := f.ready("p"); got != "True Served" {
		t.Errorf("without the registry: %s: %s", got, f.message())
	}
	f.restart() // with an empty cache
	f.step()
	if got := f.ready("p"); got != "False RegistryUnavailable" || f.status("digest") != served {
		t.Errorf("after a restart: %s, %s is served: %s", got, f.status("digest"), f.message())
	}
	if !strings.Contains(f.message(), "cue.mod/module.cue:3: module example.com/lib@v0.1.0: registry ") {
		t.Errorf("%s", f.message())
	}
}
