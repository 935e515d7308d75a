package attack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attacks are the requests of hostile tenants that run concurrently.
type attacks struct {
	running sync.WaitGroup
	mu      sync.Mutex
	done    map[string]int
	refused map[string]int
	why     map[string]error // the last refusal
	// passing are those that the operator has to bear, because the API server accepts them.
	passing map[string]bool
	// kinds is how many kinds there are at least.
	kinds int
}

func newAttacks(kinds int) *attacks {
	return &attacks{done: map[string]int{}, refused: map[string]int{}, why: map[string]error{}, passing: map[string]bool{}, kinds: kinds}
}

// mustPass notes an attack of which the API server must accept what it sends, or the operator would meet none of it.
func (a *attacks) mustPass(what string) { a.passing[what] = true }

// repeat calls a function again and again until the context ends, and counts the calls.
func (a *attacks) repeat(ctx context.Context, what string, pause time.Duration, act func(ctx context.Context, nth int) error) {
	a.running.Go(func() {
		for nth := 0; ctx.Err() == nil; nth++ {
			err := act(ctx, nth)
			if ctx.Err() != nil {
				return
			}
			a.mu.Lock()
			a.done[what]++
			if err != nil {
				a.refused[what]++
				a.why[what] = err
			}
			a.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

// How many kinds of attacks there are at least: of all tenants, and of evaluations alone.
const (
	kindsOfAttacks          = 10
	kindsOfExpensiveAttacks = 8
)

// endAfter ends the attacks after a while, but not before each kind was made: a busy machine needs longer for that.
func (a *attacks) endAfter(ctx context.Context, lasts time.Duration, end func()) {
	a.running.Go(func() {
		defer end()
		for began := time.Now(); ctx.Err() == nil; {
			a.mu.Lock()
			kinds := len(a.done)
			a.mu.Unlock()
			if took := time.Since(began); took >= lasts && (kinds >= a.kinds || took > machine.Patience) {
				return
			}
			<-time.After(pollInterval)
		}
	})
}

// pollInterval is the interval between two looks at how far the attacks are.
const pollInterval = 50 * time.Millisecond

// wait waits until the attacks have ended, and expects that each was made.
func (a *attacks) wait(t *testing.T) {
	t.Helper()
	a.running.Wait()
	for what, n := range a.done {
		t.Logf("%s: %d times, refused %d times (%.200v)", what, n, a.refused[what], a.why[what])
	}
	for what := range a.passing {
		// A busy API server may not have ended in time what it accepts.
		if why := a.why[what]; apierrors.IsInvalid(why) || apierrors.IsForbidden(why) || apierrors.IsBadRequest(why) {
			t.Errorf("%s: the API server refuses it, and the operator meets none: %v", what, why)
		}
	}
	if len(a.done) < a.kinds {
		t.Errorf("only %d kinds of attacks were made", len(a.done))
	}
}

// heavyDuration is the pause between requests that cost the API server itself a second.
const heavyDuration = 10 * time.Second

// namespaceOf creates the namespace of a tenant.
func (h *hostedOperator) namespaceOf(name string) string {
	ns := h.site.Namespace + "-" + name
	h.site.Create(harness.Object("v1", "Namespace", "", ns))
	return ns
}

// mallory may write the resources of a package and their status.
func (h *hostedOperator) mallory(ctx context.Context, a *attacks, round load) {
	ns := h.namespaceOf("mallory")
	mallory := h.site.Tenant("mallory", ns, things(h.hello))
	cr := mallory.Create(inNamespace(h.hello.Thing(h.site, "forger", nil), ns))
	victims := []*unstructured.Unstructured{
		h.site.Create(h.site.Ref("Secret", "victim")), h.site.Create(h.site.Ref("ConfigMap", "victim")),
		h.site.Create(harness.Object("v1", "Namespace", "", h.site.Namespace+"-victim")),
	}
	var entries []any
	for i, v := range victims {
		entries = append(entries, map[string]any{
			"object": fmt.Sprint("o", i), "apiVersion": v.GetAPIVersion(), "kind": v.GetKind(), "namespace": v.GetNamespace(), "name": v.GetName(),
			"clusterScoped": v.GetNamespace() == "", "uid": string(v.GetUID())[:8],
		})
	}
	forged := map[string]any{"status": map[string]any{"inventory": []any{map[string]any{"component": "old", "objects": entries}}}}
	a.repeat(ctx, "mallory forges an inventory", 20*time.Millisecond, func(context.Context, int) error {
		return mallory.PatchStatus(cr, forged)
	})
	a.repeat(ctx, "mallory asks for a reconcile", 5*time.Millisecond, func(_ context.Context, nth int) error {
		return mallory.Patch(cr, harness.Annotation("operetta.dev/reconcile-at", fmt.Sprint(nth)))
	})
	h.malloryLabels(ctx, a, round)
	h.t.Cleanup(func() {
		for _, v := range victims {
			if got, err := harness.GetOrNil(context.WithoutCancel(h.t.Context()), v); err != nil || got == nil || got.GetDeletionTimestamp() != nil {
				h.t.Errorf("%s %s was deleted (error %v)", v.GetKind(), v.GetName(), err)
			}
		}
	})
}

// malloryLabels sets as many labels as an API server stores.
func (h *hostedOperator) malloryLabels(ctx context.Context, a *attacks, _ load) {
	ns := h.namespaceOf("mallory-labels")
	mallory := h.site.Tenant("mallory-labels", ns, things(h.hello))
	// A large object costs the API server itself time, which the operator cannot avoid. So large
	// objects are written by a separate attack, and less often.
	labelled := mallory.Create(inNamespace(h.hello.Thing(h.site, "labelled", nil), ns))
	a.repeat(ctx, "mallory sets 60,000 labels", heavyDuration, func(_ context.Context, nth int) error {
		labels := map[string]any{} // with longer keys an API server does not store them
		for i := range 60_000 {
			labels[fmt.Sprintf("%x", i)] = []string{"", "x"}[nth%2]
		}
		return mallory.Patch(labelled, map[string]any{"metadata": map[string]any{"labels": labels}})
	})
}

// carol may write ConfigMaps.
func (h *hostedOperator) carol(ctx context.Context, a *attacks, round load) {
	ns := h.namespaceOf("carol")
	carol := h.site.Tenant("carol", ns, configMaps())
	marked := func(name, owner string) *unstructured.Unstructured {
		u := harness.Object("v1", "ConfigMap", ns, name)
		u.SetLabels(map[string]string{"operetta.dev/owner": "x"})
		u.SetAnnotations(map[string]string{"operetta.dev/owner": owner, "operetta.dev/component": "/", "operetta.dev/after": "greeting"})
		u.SetFinalizers([]string{"evil.example.com/x"})
		return u
	}
	owner := "Thing." + h.hello.Name + ".example.com " + h.site.Namespace + "/good-1"
	poison := carol.Create(marked("poison", owner))
	h.t.Cleanup(func() {
		_ = harness.Suite.Admin.Patch(context.WithoutCancel(h.t.Context()), poison, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	a.repeat(ctx, "carol writes forged marks", time.Millisecond, func(_ context.Context, nth int) error {
		return carol.Patch(poison, map[string]any{"data": map[string]any{"n": fmt.Sprint(nth)}})
	})
	megabyte := strings.Repeat("x", 1<<20-4096)
	a.repeat(ctx, "carol makes a megabyte", round.lasts/time.Duration(2*round.megabytes), func(ctx context.Context, nth int) error {
		u := marked(fmt.Sprint("big-", nth%round.megabytes), owner)
		u.SetFinalizers(nil)
		u.Object["data"] = map[string]any{"x": megabyte}
		if nth >= round.megabytes {
			return carol.Patch(u, map[string]any{"data": map[string]any{"n": fmt.Sprint(nth)}})
		}
		return carol.Client.Create(ctx, u)
	})
}

// alice may write WebApps and Patches.
func (h *hostedOperator) alice(ctx context.Context, a *attacks, _ load) {
	ns := h.namespaceOf("alice")
	alice := h.site.Tenant("alice", ns,
		harness.Rule(hostedGroup, harness.AllVerbs, "webapps"), harness.Rule("operetta.dev", harness.AllVerbs, "patches"))
	alice.Create(h.webapp(ns, "hers", map[string]any{"image": "nginx:1.25", "replicas": int64(0)}))
	patch := func(name string, changes ...any) *unstructured.Unstructured {
		u := harness.Object("operetta.dev/v1alpha1", "Patch", ns, name)
		u.Object["spec"] = map[string]any{
			"target":  map[string]any{"apiVersion": hostedGroup + "/v1", "kind": "WebApp", "name": "hers"},
			"patches": changes,
		}
		return u
	}
	privileged := harness.StrategicMerge("web.deployment", harness.Spec(map[string]any{"template": map[string]any{"spec": map[string]any{
		"hostPID": true, "serviceAccountName": "admin", "volumes": []any{map[string]any{"name": "root", "hostPath": map[string]any{"path": "/"}}},
	}}}))
	token := harness.StrategicMerge("config.secret", map[string]any{
		"type": "kubernetes.io/service-account-token", "metadata": map[string]any{"annotations": map[string]any{"kubernetes.io/service-account.name": "admin"}},
	})
	broken := map[string]any{"address": "web.deployment", "json6902": []any{map[string]any{"op": "test", "path": ""}}}
	for what, change := range map[string]map[string]any{
		"alice patches a privileged pod": privileged, "alice patches a token Secret": token, "alice patches with a test of nothing": broken,
	} {
		name := strings.ReplaceAll(strings.ToLower(what), " ", "-")
		a.repeat(ctx, what, 100*time.Millisecond, func(ctx context.Context, nth int) error {
			if nth%2 == 1 {
				return client.IgnoreNotFound(alice.Client.Delete(ctx, patch(name)))
			}
			return alice.Client.Create(ctx, patch(name, change))
		})
	}
}

// dave may create, update and delete the resources of packages.
func (h *hostedOperator) dave(ctx context.Context, a *attacks, _ load) {
	ns := h.namespaceOf("dave")
	dave := h.site.Tenant("dave", ns, things(h.hello), things(h.fan))
	resource := func(p *harness.TestPackage, name string, spec map[string]any) *unstructured.Unstructured {
		return inNamespace(p.Thing(h.site, name, spec), ns)
	}
	a.repeat(ctx, "dave makes and deletes resources", 50*time.Millisecond, func(ctx context.Context, nth int) error {
		if nth > 20 {
			_ = dave.Client.Delete(ctx, resource(h.hello, fmt.Sprint("short-", nth-20), nil))
		}
		return dave.Client.Create(ctx, resource(h.hello, fmt.Sprint("short-", nth), nil))
	})
	a.repeat(ctx, "dave asks for 2,000 objects", 500*time.Millisecond, func(ctx context.Context, nth int) error {
		return dave.Client.Create(ctx, resource(h.fan, fmt.Sprint("fan-", nth), map[string]any{"n": int64(2000)}))
	})
	a.repeat(ctx, "dave writes a text of a megabyte", time.Second, func(ctx context.Context, nth int) error {
		return dave.Client.Create(ctx, resource(h.hello, fmt.Sprint("long-", nth), map[string]any{"text": strings.Repeat("x", 1<<20)}))
	})
}

// erin may write resources whose evaluation never ends, or takes all memory, as CUE sees it.
func (h *hostedOperator) erin(ctx context.Context, a *attacks, _ load) {
	ns := h.namespaceOf("erin")
	erin := h.site.Tenant("erin", ns, things(h.spending))
	for name, spec := range spendings {
		u := erin.Create(inNamespace(h.spending.Thing(h.site, name, spec), ns))
		a.mustPass("erin asks for the " + name)
		a.repeat(ctx, "erin asks for the "+name, time.Second, func(ctx context.Context, nth int) error { // another text is another evaluation
			return erin.Client.Patch(ctx, u.DeepCopy(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"text":"%d"}}`, nth)))
		})
	}
	const many = "erin sets 60,000 keys"
	a.mustPass(many)
	a.repeat(ctx, many, heavyDuration, func(ctx context.Context, nth int) error {
		return erin.Client.Create(ctx, inNamespace(h.spending.Thing(h.site, fmt.Sprint("many-", nth), map[string]any{"env": keys(60_000)}), ns))
	})
}

// hangingTexts are texts of a package that CUE does not end with: https://cuelang.org/issue/4453, and a template
// that is executed when the package is compiled.
var hangingTexts = []string{
	"_x: (int | {d: d}) & (int | {}) & (int | {})\n",
	"import \"text/template\"\n\n_x: template.Execute(\"" + endless + "\", {})\n_y: _x & \"y\"\n",
}

// frank may write the folder of one package.
func (h *hostedOperator) frank(ctx context.Context, a *attacks, round load) {
	file := filepath.Join(h.hanging.Dir, "hanging.cue")
	a.repeat(ctx, "frank writes a package that hangs", round.lasts/4, func(_ context.Context, nth int) error {
		text := "package " + h.hanging.Name + "\n\n" + hangingTexts[nth%len(hangingTexts)] + fmt.Sprintf("_nth: %d\n", nth)
		return os.WriteFile(file, []byte(text), 0o600)
	})
}
