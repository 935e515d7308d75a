package e2e

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/test/harness"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookBody is a package that says what no CustomResourceDefinition can: a default follows from another field,
// and some values do not fit into an object.
const webhookBody = `
#Spec: {
	image:    string | *"nginx:1.25"
	replicas: int & >=0 & <=100 | *3
	most?:    int
	note?:    string
	hang?:    int
}
cr: spec: {replicas: _, most: int & >=replicas | *replicas, ...}

admission: {
	warnings: {
		if cr.spec.image !~ "(:[^/]+|@[^/]+)$" {untagged: "spec.image: \(cr.spec.image) has no tag"}
	}
	labels: "NAME.example.com/replicas": "\(cr.spec.replicas)"
}

components: web: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: cr.metadata.name
	data: {
		replicas: "\(cr.spec.replicas)"
		most:     "\(cr.spec.most)"
		if cr.spec.note != _|_ {note: cr.spec.note & !~"forbidden"}
	}
}
`

// invalidThing returns a resource that only the webhook refuses.
func invalidThing(p *testPackage, s *env, name string) *unstructured.Unstructured {
	return p.Thing(s.Env, name, map[string]any{"note": "forbidden"})
}

// startHooked starts an operator of a package with webhooks.
func startHooked(t *testing.T, s *env, p *testPackage, flags ...string) *harness.Webhooks {
	t.Helper()
	w := s.NewWebhooks(p.Dir)
	s.StartOperator(append(append([]string{p.Dir}, w.Flags()...), flags...)...)
	w.Await(invalidThing(p, s, "early"))
	return w
}

// mustBeRefused fails the test unless an error is a refusal with a field among its causes.
func mustBeRefused(t *testing.T, err error, field, says string) {
	t.Helper()
	status, is := err.(apierrors.APIStatus)
	if !is || !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want that %s is refused", err, field)
		return
	}
	var fields []string
	for _, c := range status.Status().Details.Causes {
		fields = append(fields, c.Field)
	}
	if !slices.Contains(fields, field) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v with the fields %q, want %s and %q", err, fields, field, says)
	}
}

func TestF29W53W54W58TheWebhookRefusesWhatCannotBeRendered(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "refusing", webhookBody)
	startHooked(t, s, p)
	admin := harness.NewWarned(t)

	mustBeRefused(t, admin.Create(t.Context(), invalidThing(p, s, "refused")), "components.web.objects.map.data.note", "forbidden")
	if u, err := harness.GetOrNil(t.Context(), p.Thing(s.Env, "refused", nil)); err != nil || u != nil {
		t.Errorf("W-58: what is refused is stored: %v, %v", u, err)
	}
	mustBeRefused(t, admin.Create(t.Context(), p.Thing(s.Env, "refused", map[string]any{"replicas": int64(-1)})), "spec.replicas", "greater than or equal to 0")

	admin.Take()
	untagged := p.Thing(s.Env, "web", map[string]any{"image": "nginx"})
	if err := admin.Create(t.Context(), untagged); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"spec.image: nginx has no tag"}, admin.Take()); diff != "" {
		t.Errorf("W-53: warnings (-want +got):\n%s", diff)
	}
	s.ExpectResourceReady(untagged)
	change := func(patch any) error {
		return admin.Patch(t.Context(), untagged.DeepCopy(), client.RawPatch(types.MergePatchType, harness.Encode(t, patch)))
	}
	mustBeRefused(t, change(harness.Spec(map[string]any{"note": "forbidden"})), "components.web.objects.map.data.note", "forbidden")
	if err := change(harness.Spec(map[string]any{"note": "fine"})); err != nil {
		t.Error(err)
	}
	s.ExpectData("web", "note", "fine")
	s.Delete(untagged)
	s.ExpectGone(untagged)
}

func TestW55W56W57TheWebhookAddsDefaultsAndLabelsOnce(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "defaulting", webhookBody)
	startHooked(t, s, p)
	cr := s.Create(p.Thing(s.Env, "web", map[string]any{"replicas": int64(4)}))
	want := map[string]any{"image": "nginx:1.25", "replicas": int64(4), "most": int64(4)}
	if diff := cmp.Diff(want, cr.Object["spec"]); diff != "" {
		t.Errorf("W-55: spec (-want +got):\n%s", diff)
	}
	const label = "defaulting.example.com/replicas"
	if got := cr.GetLabels()[label]; got != "4" {
		t.Errorf("W-56: the label is %q", got)
	}
	generation := cr.GetGeneration()
	again := s.Patch(cr, harness.Annotation("touched", "yes"))
	if again.GetGeneration() != generation || again.GetLabels()[label] != "4" {
		t.Errorf("W-56: a second pass changes the spec: %v", again.Object)
	}
	// W-57: validation sees what was added: 2 is less than the default of the field it is compared with.
	changed := s.Patch(cr, harness.Spec(map[string]any{"replicas": int64(2), "most": nil}))
	if diff := cmp.Diff(map[string]any{"image": "nginx:1.25", "replicas": int64(2), "most": int64(2)}, changed.Object["spec"]); diff != "" || changed.GetLabels()[label] != "2" {
		t.Errorf("the label is %q, spec (-want +got):\n%s", changed.GetLabels()[label], diff)
	}
	err := harness.Suite.Admin.Patch(t.Context(), cr.DeepCopy(), client.RawPatch(types.MergePatchType, harness.Encode(t, harness.Spec(map[string]any{"replicas": int64(9)}))))
	mustBeRefused(t, err, "spec.most", ">=9")
	s.ExpectData("web", "most", "2")
}

// What the engine and garbage collection do to a resource does not depend on a webhook, also if the API server
// refuses what nobody reviews.
func TestJ11K46NothingOfTheEngineDependsOnItsWebhooks(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "closed", webhookBody+"\nadmission: failurePolicy: \"Fail\"\nreach: Namespace: {}\ncomponents: space: objects: ns: {apiVersion: \"v1\", kind: \"Namespace\", metadata: name: \"\\(cr.metadata.namespace)-more\"}\n")
	startHooked(t, s, p)
	cr := s.Create(p.Thing(s.Env, "web", nil))
	s.ExpectResourceReady(cr)
	s.Operator.Stop()
	if err := harness.Suite.Admin.Create(t.Context(), p.Thing(s.Env, "unheard", nil)); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a request is accepted although nobody was asked: %v", err)
	}
	s.Patch(cr, map[string]any{"metadata": map[string]any{"finalizers": []any{"operetta.dev/teardown", "example.com/mine"}}})
	// The operator comes back without webhooks.
	s.StartOperator(p.Dir)
	s.ExpectResourceReady(cr)
	s.Delete(cr)
	s.Patch(cr, map[string]any{"metadata": map[string]any{"finalizers": []any{"operetta.dev/teardown"}}})
	s.ExpectGone(cr)
}

func TestAnExpensiveRequestIsRefusedAndHarmsNobody(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	body := strings.Replace(webhookBody, "components: web:", `
components: hang: objects: {
	if cr.spec.hang != _|_ {
		map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "hang", data: {for a in list.Range(0, cr.spec.hang, 1) for b in list.Range(0, cr.spec.hang, 1) for c in list.Range(0, cr.spec.hang, 1) {"k\(a)-\(b)-\(c)": "v"}}}
	}
}
components: web:`, 1)
	p := &testPackage{&harness.TestPackage{T: t, Name: "expensive", Dir: harness.WritePackage(t, "expensive", strings.ReplaceAll(strings.Replace(harness.TestPackageHead, `import "operetta.dev/schemas/operator"`, "import (\n\t\"list\"\n\t\"operetta.dev/schemas/operator\"\n)", 1)+body, "NAME", "expensive"))}}
	// So little processor time is used up before the API server gives up, however busy the machine is.
	startHooked(t, s, p, "--evaluation-time", "200ms")
	calm := s.Create(p.Thing(s.Env, "calm", nil))
	s.ExpectResourceReady(calm)

	const loud = 6
	var pending sync.WaitGroup
	refused := make(chan struct{}, loud)
	for i := range loud {
		pending.Go(func() {
			// Who has no turn in time is asked nothing, and the failure policy ignores that. On a busy machine
			// that may be all of them, so each asks until it is refused.
			for name := range tries(t, fmt.Sprintf("hang-%d", i)) {
				began := time.Now()
				err := harness.Suite.Admin.Create(t.Context(), p.Thing(s.Env, name, map[string]any{"hang": int64(400)}))
				if took := time.Since(began); took > machine.Limit(20*time.Second) {
					t.Errorf("it took %s: %v", took, err)
				}
				switch {
				case apierrors.IsInvalid(err):
					refused <- struct{}{}
					return
				case err != nil:
					t.Error(err)
				}
			}
		})
	}
	// A reconcile goes on meanwhile. Its own requests wait for no review.
	s.Patch(calm, harness.Annotation("operetta.dev/reconcile-at", "now"))
	s.ExpectObject(calm, "to be reconciled", func(u *unstructured.Unstructured) error {
		if harness.Field(u, "status", "lastHandledReconcileAt") != "now" {
			return harness.ErrNotYet
		}
		return nil
	})
	pending.Wait()
	if len(refused) == 0 {
		t.Error("no expensive request is refused")
	}
	t.Logf("%d of %d refused", len(refused), loud)
	mustBeRefused(t, harness.Suite.Admin.Create(t.Context(), invalidThing(p, s, "after")), "components.web.objects.map.data.note", "forbidden")
}

// tries returns names for a few tries.
func tries(t *testing.T, name string) iter.Seq[string] {
	t.Helper()
	const most = 4
	return func(yield func(string) bool) {
		for i := range most {
			if !yield(fmt.Sprintf("%s-%d", name, i)) {
				return
			}
		}
	}
}

func TestW47AStandbyServesWebhooks(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "standing", webhookBody)
	w := s.NewWebhooks(p.Dir)
	lead := []string{p.Dir, "--leader-elect", "--leader-elect-namespace", s.Namespace}
	// The first one leads, and serves on another port than the API server calls.
	other := *w
	other.Port = harness.FreePort(t)
	s.StartOperator(append(lead, other.Flags()...)...).ExpectLog(leaseAcquiredText)
	standby := s.StartOperator(append(lead, w.Flags()...)...)
	w.Await(invalidThing(p, s, "refused"))
	if strings.Contains(standby.Log.From(0), leaseAcquiredText) {
		t.Error("the process that was asked leads")
	}
}

func TestF29J11W58CertificatesAreReplacedWithoutALostRequest(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "rotating", webhookBody+"\nadmission: failurePolicy: \"Fail\"\n")
	startHooked(t, s, p, "--webhook-cert-lifetime", "30s")
	const text = "with a new certificate"
	served := func() int { return strings.Count(s.Operator.Log.From(0), text) }
	first := served()
	asked, failed := 0, 0
	harness.Eventually(t, "three more certificates", func() error {
		for range 10 {
			asked++
			if err := harness.Suite.Admin.Create(t.Context(), p.Thing(s.Env, "asked", nil), client.DryRunAll); err != nil {
				failed++
				t.Errorf("a request is lost: %v", err)
			}
		}
		mustBeRefused(t, harness.Suite.Admin.Create(t.Context(), invalidThing(p, s, "refused"), client.DryRunAll), "components.web.objects.map.data.note", "forbidden")
		if served() < first+3 {
			return fmt.Errorf("%d were served, after %d requests", served(), asked)
		}
		return nil
	})
	t.Logf("%d requests of %d lost over %d certificates", failed, asked, served())
}

func TestADryRunByKubectlSaysWhatWouldBeLost(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "planned", webhookBody+`
#Spec: {name?: string, key?: string}
components: web: {
	policy: fixed: apply: "recreateOnImmutable"
	objects: fixed: {
		apiVersion: "v1"
		kind:       "Secret"
		metadata: name: "\(cr.metadata.name)-fixed"
		immutable: true
		if cr.spec.key != _|_ {stringData: key: cr.spec.key}
	}
}
components: more: objects: {
	if cr.spec.name != _|_ {
		named: {apiVersion: "v1", kind: "ConfigMap", metadata: name: cr.spec.name}
	}
}
`)
	startHooked(t, s, p)
	admin := harness.NewWarned(t)
	if err := admin.Create(t.Context(), p.Thing(s.Env, "web", map[string]any{"name": "first"}), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	fresh := admin.Take()
	slices.Sort(fresh)
	if diff := cmp.Diff([]string{"creates ConfigMap first", "creates ConfigMap web", "creates Secret web-fixed"}, fresh); diff != "" {
		t.Errorf("of a new resource (-want +got):\n%s", diff)
	}
	cr := s.Create(p.Thing(s.Env, "web", map[string]any{"name": "first", "key": "a"}))
	s.ExpectResourceReady(cr)
	before := []*unstructured.Unstructured{s.Get("Secret", "web-fixed"), s.Get("ConfigMap", "first"), s.Get("ConfigMap", "web")}
	err := admin.Patch(t.Context(), cr.DeepCopy(), client.RawPatch(types.MergePatchType, harness.Encode(t, harness.Spec(map[string]any{"name": "second", "key": "b", "replicas": int64(7), "most": int64(7)}))), client.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"creates ConfigMap second", "deletes ConfigMap first", "recreates Secret web-fixed", "updates ConfigMap web"}
	got := admin.Take()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of a change (-want +got):\n%s", diff)
	}
	for _, kept := range before {
		if u := s.Get(kept.GetKind(), kept.GetName()); u.GetResourceVersion() != kept.GetResourceVersion() {
			t.Errorf("a plan has written %s %s", kept.GetKind(), kept.GetName())
		}
	}
	if u, err := s.Lookup("ConfigMap", "second"); err != nil || u != nil {
		t.Errorf("a plan has made an object: %v, %v", u, err)
	}
}
