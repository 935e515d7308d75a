package packages

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/cluster/memory"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/source"
	"operetta.dev/engine/status"
	"operetta.dev/test/inline"
)

// site is a cluster in memory with the parts that a Reconciler is given. It records what is done with the
// Server.
type site struct {
	*Reconciler

	t       *testing.T
	memory  *memory.Cluster
	enqueue chan string

	mu sync.Mutex
	// calls are those of the Server since they were taken last.
	calls     []string
	served    map[schema.GroupKind]*program.Program
	resources []Resource
	// canary is what the Server has of a canary.
	canary *Canary
	// pins is what it has of pins.
	pins      Pins
	installed error
	// actsAs are the accounts of kinds, and accountProblem is what is wrong with accounts.
	actsAs         map[schema.GroupKind]object.Account
	accountProblem map[object.Account]string
	// annotated is the account in the definition that was installed last.
	annotated string
	refused   error
	// owner is the package whose definition the cluster has, and defined are the kinds of definitions with
	// the label of a Package.
	owner   string
	defined []schema.GroupVersionKind
	// limits are those of the lists of resources.
	limits []int
	// looping is the Package whose checks do not end.
	looping string
	// ended is why checks end without a result.
	ended error
	planner
	versionsOfSite
	now  time.Time
	maps map[string]*unstructured.Unstructured
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, memory: memory.New(), now: time.Unix(1_800_000_000, 0), maps: map[string]*unstructured.Unstructured{}}
	s.memory.Serve(Kind.GroupKind(), cluster.ClusterScoped)
	s.memory.Serve(RevisionKind.GroupKind(), cluster.ClusterScoped)
	s.restart()
	return s
}

// restart replaces the reconciler, as a new process does.
func (s *site) restart() {
	s.actsAs = map[schema.GroupKind]object.Account{}
	s.served, s.enqueue = map[schema.GroupKind]*program.Program{}, make(chan string, 100)
	s.Reconciler = &Reconciler{
		Cluster: s.memory, Revisions: s.memory, ConfigMaps: s, Examiner: s, Server: s, Versions: s, Accounts: s, Planner: s, Recorder: s, Selector: labels.Everything(),
		Enqueue: func(name string) { s.enqueue <- name }, Log: logr.Discard(), Now: func() time.Time { return s.now },
	}
}

// apply writes a Package.
func (s *site) apply(name string, spec map[string]any) {
	s.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(Kind)
	u.SetName(name)
	if present := s.get(name); present != nil {
		u = present
		u.Object["spec"] = spec
	}
	if _, err := s.memory.Put("kubectl", u); err != nil {
		s.t.Fatal(err)
	}
}

// text returns a package of a kind, with a name that its digest depends on.
func text(kind, name string) map[string]any {
	return map[string]any{"source": map[string]any{"inline": map[string]any{"main.cue": strings.NewReplacer("KIND", kind, "NAME", name).Replace(`package p

import "operetta.dev/schemas/operator"

operator.#Controller
group: "example.com"
kind:  "KIND"
versions: v1: spec: #Spec
#Spec: {}
cr: spec: #Spec
components: note: objects: note: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "NAME"}
`)}}}
}

func (s *site) get(name string) *unstructured.Unstructured {
	s.t.Helper()
	u, err := s.memory.GetLive(s.t.Context(), cluster.Ref{GroupVersionKind: Kind, Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

// step takes a Package as far as it goes, through its examinations, and returns the last error.
func (s *site) step(name string) error {
	s.t.Helper()
	for {
		_, err := s.Reconcile(s.t.Context(), types.NamespacedName{Name: name})
		if !s.examining(name) {
			return err
		}
		select {
		case <-s.enqueue:
		case <-time.After(time.Minute):
			s.t.Fatal("an examination does not end")
		}
	}
}

// examining reports whether an examination of a Package has not been heard of yet.
func (s *site) examining(name string) bool {
	st := s.states[name]
	if st == nil {
		return false
	}
	for _, e := range st.exams {
		if !e.ended() || len(s.enqueue) > 0 {
			return true
		}
	}
	for _, v := range st.pinned {
		if !v.exam.ended() {
			return true
		}
	}
	return len(s.enqueue) > 0 || s.planning(st)
}

// ready returns the reason and status of the condition Ready.
func (s *site) ready(name string) string {
	s.t.Helper()
	before, _, _ := unstructured.NestedMap(s.get(name).Object, "status")
	c := status.Condition(before, status.ConditionReady)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func (s *site) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.calls
	s.calls = nil
	return out
}

func (s *site) callf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

// Examine implements Examiner.
func (s *site) Examine(ctx context.Context, snapshot *source.Snapshot) (Candidate, error) {
	if snapshot.Name() == s.looping {
		s.callf("examine %s", snapshot.Name())
		<-ctx.Done()
		return Candidate{}, ctx.Err()
	}
	if s.ended != nil || s.dying != "" && snapshot.Digest() == s.dying {
		return Candidate{}, errors.Join(s.ended, errors.New("its worker has died"))
	}
	if s.spoilt != "" && snapshot.Digest() == s.spoilt {
		return Candidate{}, fault.Faults{{Message: "it cannot be used"}}
	}
	p, err := inline.Load(snapshot)
	if err != nil {
		return Candidate{}, err
	}
	if s.definitionOf != nil {
		return Candidate{Program: p, CRD: s.definitionOf(snapshot.Texts()["main.cue"])}, nil
	}
	return Candidate{Program: p, CRD: &apiextensionsv1.CustomResourceDefinition{}}, nil
}

// Slots implements Examiner.
func (s *site) Slots() int { return 1 }

// Defined implements Examiner.
func (s *site) Defined(context.Context, string) ([]schema.GroupVersionKind, error) {
	return s.defined, nil
}

func (s *site) ServedBy(kind schema.GroupKind) string {
	if p := s.served[kind]; p != nil {
		return p.Name()
	}
	return ""
}

func (s *site) Serve(p *program.Program) error {
	if s.refused != nil {
		return s.refused
	}
	s.callf("serve %s", p.GroupVersionKind().Kind)
	s.served[p.GroupVersionKind().GroupKind()] = p
	return nil
}

func (s *site) ServeOutdated(p *program.Program, fault string, c *Canary) error {
	s.callf("serve %s outdated: %s", p.GroupVersionKind().Kind, fault)
	s.canary = c
	if c != nil {
		s.callf("canary %s", s.selected())
	}
	s.served[p.GroupVersionKind().GroupKind()] = p
	return nil
}

func (s *site) Swap(_ context.Context, _, p *program.Program) error {
	s.callf("swap %s", p.GroupVersionKind().Kind)
	return nil
}

func (s *site) ReportOutdated(_ context.Context, _ *program.Program, fault string) error {
	s.callf("outdated: %s", fault)
	return nil
}

func (s *site) Withdraw(_ context.Context, p *program.Program) error {
	s.callf("withdraw %s", p.GroupVersionKind().Kind)
	delete(s.served, p.GroupVersionKind().GroupKind())
	return nil
}

func (s *site) ReportBroken(_, name, fault string) { s.callf("broken %s: %s", name, fault) }
func (s *site) ReportRepaired(_, _ string)         {}

func (s *site) Resources(context.Context, schema.GroupVersionKind) ([]Resource, error) {
	return s.resources, nil
}

func (s *site) Remaining(_ context.Context, _ schema.GroupVersionKind, limit int) ([]Resource, error) {
	s.limits = append(s.limits, limit)
	return s.resources[:min(len(s.resources), limit)], nil
}

func (s *site) Get(_ context.Context, _ string, ref ConfigMapReference) (*unstructured.Unstructured, error) {
	return s.maps[ref.Namespace+"/"+ref.Name], nil
}

func (s *site) Forget(string)                                    {}
func (s *site) Record(*unstructured.Unstructured, rollout.Event) {}

func TestWhatAPackageGoesThrough(t *testing.T) {
	t.Parallel()
	wrong := map[string]any{"source": map[string]any{"inline": map[string]any{"main.cue": "package p\nx: 1\nx: 2\n"}}}
	with := func(spec map[string]any, more map[string]any) map[string]any {
		maps.Copy(spec, more)
		return spec
	}
	apply := func(spec map[string]any) func(*site) { return func(s *site) { s.apply("p", spec) } }
	nothing := func(*site) {}
	restart := func(s *site) { s.restart() }
	one := []Resource{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "one"}}}
	for name, row := range map[string]struct {
		reason string
		turns  []turn
	}{
		"a new one, a change, and the same again": {"what is served already is not served again", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{apply(text("Thing", "b")), "True Served", []string{"install", "swap Thing"}},
			{nothing, "True Served", nil},
			{apply(text("Thing", "b")), "True Served", nil},
		}},
		"a broken change, and its end": {"the version before goes on, and says so while it does", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{apply(wrong), "False PackageBroken", []string{"outdated: main.cue:3: x" + sayswhy}},
			{nothing, "False PackageBroken", nil},
			{apply(text("Thing", "a")), "True Served", []string{"outdated: "}},
		}},
		"a restart while it is broken": {"what was accepted last serves", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{apply(wrong), "False PackageBroken", []string{"outdated: main.cue:3: x" + sayswhy}},
			{restart, "False PackageBroken", []string{"install", "serve Thing outdated: main.cue:3: x" + sayswhy}},
			{apply(text("Thing", "b")), "True Served", []string{"install", "swap Thing"}},
		}},
		"a broken beginning": {"there is nothing to serve", []turn{
			{apply(wrong), "False PackageBroken", []string{"broken p: main.cue:3: x" + sayswhy}},
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
		}},
		"paused": {"a pause keeps what is served, and nothing is wrong with it", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{apply(with(text("Thing", "b"), map[string]any{"paused": true})), "False Paused", nil},
			{restart, "False Paused", []string{"install", "serve Thing outdated: "}},
			{apply(with(text("Thing", "b"), map[string]any{"paused": false})), "True Served", []string{"install", "swap Thing"}},
		}},
		"paused with what is served": {"there is no change to hold back", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{apply(with(text("Thing", "a"), map[string]any{"paused": true})), "True Served", nil},
			{restart, "True Served", []string{"install", "serve Thing outdated: "}},
		}},
		"another kind": {"the resources of the first one would be stranded", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{func(s *site) { s.resources = one; s.apply("p", text("Gadget", "a")) }, "False KindInUse", []string{"outdated: KindInUse" + sayswhy}},
			{func(s *site) { s.resources = nil }, "True Served", []string{"install", "withdraw Thing", "serve Gadget"}},
		}},
		"a content that cannot be kept": {"a restart could not go back to it, so it is not served", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{func(s *site) { s.memory.SetAdmission(refuseRevisions); s.apply("p", text("Thing", "b")) }, "False NotKept", []string{"outdated: NotKept" + sayswhy}}, // its definition is not installed either
			{func(s *site) { s.now = s.now.Add(time.Hour) }, "False NotKept", nil},
			{func(s *site) { s.memory.SetAdmission(nil) }, "True Served", []string{"install", "swap Thing"}},
		}},
		"a definition of somebody else": {"it is not replaced, and nothing is kept", []turn{
			{func(s *site) { s.installed = &ForeignCRDError{Name: "x"}; s.apply("p", text("Thing", "a")) }, "False ForeignCRD", []string{"broken p: ForeignCRD" + sayswhy}},
			{func(s *site) { s.installed = nil }, "True Served", []string{"install", "serve Thing"}},
		}},
		"a check that was ended": {"the machine may have been busy, and is not kept busy", []turn{
			{func(s *site) { s.ended = errors.New("too slow"); s.apply("p", text("Thing", "a")) }, "False CheckFailed", []string{"broken p: CheckFailed" + sayswhy}},
			{func(s *site) { s.ended = nil; s.now = s.now.Add(time.Minute) }, "False CheckFailed", nil},
			{func(s *site) { s.now = s.now.Add(examineAgain) }, "True Served", []string{"install", "serve Thing"}},
		}},
		"a spec of a newer version": {"what was accepted last serves", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{apply(with(text("Thing", "b"), map[string]any{"newer": true})), "False InvalidSpec", []string{"outdated: InvalidSpec" + sayswhy}},
			{restart, "False InvalidSpec", []string{"install", "serve Thing outdated: InvalidSpec" + sayswhy}},
		}},
		"a spec of a newer version that comes while the operator is away": {"what was accepted last serves", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{func(s *site) { apply(with(text("Thing", "b"), map[string]any{"newer": true}))(s); restart(s) }, "False InvalidSpec", []string{"install", "serve Thing outdated: InvalidSpec" + sayswhy}},
		}},
		"a folder that was quicker": {"both are named, and the kind may become free", []turn{
			{func(s *site) { s.refused = errors.New("taken"); s.apply("p", text("Thing", "a")) }, "False NotServed", []string{"install", "broken p: NotServed" + sayswhy}},
			{func(s *site) { s.refused = nil; s.serveFolder(true) }, "False KindTaken", []string{"broken p: KindTaken" + sayswhy}},
			{func(s *site) { s.serveFolder(false) }, "True Served", []string{"install", "serve Thing"}},
		}},
		"a ConfigMap that comes, changes and vanishes": {"what it had goes on", []turn{
			{apply(map[string]any{"source": map[string]any{"configMap": map[string]any{"namespace": "ns", "name": "x"}}}), "False SourceNotFound", []string{"broken p: SourceNotFound" + sayswhy}},
			{func(s *site) { s.setConfigMap("1", "a") }, "True Served", []string{"install", "serve Thing"}},
			{func(s *site) { s.setConfigMap("2", "b") }, "True Served", []string{"install", "swap Thing"}},
			{func(s *site) { delete(s.maps, "ns/x") }, "False SourceNotFound", []string{"outdated: SourceNotFound" + sayswhy}},
			{func(s *site) { s.setConfigMap("2", "b") }, "True Served", []string{"outdated: "}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.play(row.reason, row.turns)
		})
	}
}

// serveFolder has a folder serve the kind Thing, or end that.
func (s *site) serveFolder(serves bool) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Thing"}
	delete(s.served, kind)
	if !serves {
		return
	}
	files := map[string]string{}
	for name, content := range text("Thing", "folder")["source"].(map[string]any)["inline"].(map[string]any) {
		files[name] = content.(string)
	}
	snapshot, err := source.Loader{}.Files("other", "folder x", ".", files)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.served[kind], err = inline.Load(snapshot); err != nil {
		s.t.Fatal(err)
	}
}

// refuseRevisions refuses to write a PackageRevision.
func refuseRevisions(_, after *unstructured.Unstructured) error {
	if after != nil && after.GetKind() == RevisionKind.Kind {
		return errors.New("no space left")
	}
	return nil
}

func (s *site) setConfigMap(version, name string) {
	files := text("Thing", name)["source"].(map[string]any)["inline"].(map[string]any)
	u := &unstructured.Unstructured{Object: map[string]any{"data": files}}
	u.SetResourceVersion(version)
	s.maps["ns/x"] = u
}

func TestTheStatusIsWrittenOnlyWhenItChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.apply("p", text("Thing", "a"))
	if err := s.step("p"); err != nil {
		t.Fatal(err)
	}
	before := s.get("p").GetResourceVersion()
	for range 3 {
		if err := s.step("p"); err != nil {
			t.Fatal(err)
		}
	}
	if after := s.get("p").GetResourceVersion(); after != before {
		t.Errorf("it was written: %s, then %s", before, after)
	}
	s.resources = []Resource{{Digest: "x"}}
	if err := s.step("p"); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(s.get("p").Object, "status", "resources"); n != 1 {
		t.Errorf("%d resources are counted", n)
	}
}

func TestWayBackToAContentIsKeptAnewWhileItsRevisionIsBeingDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	spec := func(name string) map[string]any {
		out := text("Thing", name)
		out["revisionHistoryLimit"] = int64(1)
		return out
	}
	revisions := func() []*unstructured.Unstructured {
		all, err := s.memory.ListLive(t.Context(), cluster.Selection{Kind: RevisionKind})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	s.apply("p", spec("a"))
	_ = s.step("p")
	first := revisions()[0].DeepCopy()
	first.SetFinalizers([]string{"foregroundDeletion"}) // as the API server does
	if _, err := s.memory.Put("apiserver", first); err != nil {
		t.Fatal(err)
	}
	s.apply("p", spec("b"))
	_ = s.step("p")
	s.apply("p", spec("a"))
	_ = s.step("p")
	if got := s.ready("p"); got != "True Served" {
		t.Errorf("on the way back, Ready is %s: %v", got, s.get("p").Object["status"])
	}
	kept := 0
	for _, u := range revisions() {
		if u.GetDeletionTimestamp() == nil {
			kept++
			if u.GetName() == first.GetName() {
				t.Error("the revision that is being deleted counts as kept")
			}
		}
	}
	if kept != 1 {
		t.Errorf("%d revisions are kept", kept)
	}
}

func TestOfTwoPackagesOfOneKindTheOneThatServedItServes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.apply("z", text("Thing", "a"))
	s.apply("a", text("Thing", "b"))
	_ = s.step("z")
	_ = s.step("a")
	for _, again := range []bool{false, true} {
		if again {
			s.restart()
			_ = s.step("a") // the other order
			_ = s.step("z")
		}
		if z, a := s.ready("z"), s.ready("a"); z != "True Served" || a != "False KindTaken" {
			t.Errorf("after a restart %v: z is %s, and a is %s", again, z, a)
		}
	}
}
