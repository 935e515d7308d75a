package packages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/object"
	"operetta.dev/engine/status"
)

// planner is what the Planner of a site says.
type planner struct {
	impact  Impact
	planErr error
	panics  bool
	// blocked has plans go on until their context ends.
	blocked bool
	// plansAs is as whom the last plan was made.
	plansAs object.Account
	// spoilt is the digest of a content that cannot be used any more.
	spoilt string
	// dying is the digest of a content whose check is ended without a result.
	dying string
}

// Plan implements Planner.
func (s *site) Plan(ctx context.Context, as object.Account, served *Candidate, next Candidate, progress func(done, all int)) (Impact, error) {
	s.mu.Lock()
	s.plansAs = as
	s.mu.Unlock()
	from := "nothing"
	if served != nil {
		from = "the version before"
	}
	if served != nil && (served.CRD == nil || served.Program.Digest() == next.Program.Digest()) {
		from = "itself"
	}
	s.callf("plan from %s", from)
	progress(1, 3)
	if s.panics {
		panic("hunter2")
	}
	if s.blocked {
		<-ctx.Done()
		s.callf("plan ended")
		return Impact{}, ctx.Err()
	}
	return s.impact, s.planErr
}

// planning reports whether the plan of a Package is being made.
func (s *site) planning(of *state) bool { return of.plan != nil && !of.plan.ended() && !s.blocked }

// condition returns the status, reason and message of a condition of the Package p.
func (s *site) condition(kind string) string {
	s.t.Helper()
	of, _, _ := unstructured.NestedMap(s.get("p").Object, "status")
	c := status.Condition(of, kind)
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// withLimits returns the spec of a Package with limits.
func withLimits(spec map[string]any, limits map[string]any, more ...map[string]any) map[string]any {
	spec["limits"] = limits
	for _, m := range more {
		maps.Copy(spec, m)
	}
	return spec
}

func TestAContentIsHeldBackByWhatItWouldDelete(t *testing.T) {
	t.Parallel()
	two, one := map[string]any{"maxDelete": int64(2)}, map[string]any{"maxDelete": int64(1)}
	apply := func(spec map[string]any) func(*site) { return func(s *site) { s.apply("p", spec) } }
	would := func(i Impact, spec map[string]any) func(*site) {
		return func(s *site) { s.impact = i; s.apply("p", spec) }
	}
	begin := turn{apply(withLimits(text("Thing", "a"), one)), "True Served", []string{"install", "serve Thing"}}
	beyond := turn{would(Impact{Deleted: 2}, withLimits(text("Thing", "b"), one)), "False LimitExceeded", []string{planned}}
	for name, row := range map[string]struct {
		reason string
		turns  []turn
	}{
		"no limits": {"nothing is planned", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{would(Impact{Deleted: 2}, text("Thing", "b")), "True Served", []string{"install", "swap Thing"}},
		}},
		"within its limit": {"it is taken over once its plan is made", []turn{
			begin, {would(Impact{Deleted: 1, Recreated: 9}, withLimits(text("Thing", "b"), one)), "True Served", []string{planned, "install", "swap Thing"}},
		}},
		"beyond a limit that is raised": {"the plan that is known is enough", []turn{
			begin, beyond, {func(*site) {}, "False LimitExceeded", nil},
			{apply(withLimits(text("Thing", "b"), two)), "True Served", []string{"install", "swap Thing"}},
		}},
		"beyond a limit that is raised later": {"resources may have come meanwhile", []turn{
			begin, beyond,
			{func(s *site) {
				s.now, s.impact = s.now.Add(planFresh), Impact{Deleted: 3}
				s.apply("p", withLimits(text("Thing", "b"), two))
			}, "False LimitExceeded", []string{planned}},
		}},
		"beyond a limit that is taken away": {"nothing holds it back any more", []turn{
			begin, beyond, {apply(text("Thing", "b")), "True Served", []string{"install", "swap Thing"}},
		}},
		"another content is within the limit": {"each content has its own plan", []turn{
			begin, beyond, {would(Impact{}, withLimits(text("Thing", "c"), one)), "True Served", []string{planned, "install", "swap Thing"}},
		}},
		"the way back": {"what is served needs no plan", []turn{
			begin, beyond, {apply(withLimits(text("Thing", "a"), one)), "True Served", nil},
		}},
		"something else is in the way": {"a plan is not made each time that it is tried again", []turn{
			begin,
			{func(s *site) {
				s.memory.SetAdmission(refuseRevisions)
				s.apply("p", withLimits(text("Thing", "b"), one))
			}, "False NotKept", []string{planned, "outdated: NotKept" + sayswhy}},
			{func(s *site) { s.now = s.now.Add(2 * planFresh) }, "False NotKept", nil},
			{func(s *site) { s.memory.SetAdmission(nil) }, "True Served", []string{"install", "swap Thing"}},
		}},
		"a content too large to be kept": {"no API server would store it, and it is not tried again", []turn{
			{apply(text("Thing", "a")), "True Served", []string{"install", "serve Thing"}},
			{apply(commented(text("Thing", "b"), 7<<18)), "False SourceTooLarge", []string{"outdated: SourceTooLarge" + sayswhy}},
			{func(s *site) { s.now = s.now.Add(time.Hour) }, "False SourceTooLarge", nil},
			{apply(text("Thing", "b")), "True Served", []string{"install", "swap Thing"}},
		}},
		"resources that are gone": {"the plan is made again after some time", []turn{
			begin, beyond, {func(s *site) { s.impact, s.now = Impact{}, s.now.Add(planAgain) }, "True Served", []string{planned, "install", "swap Thing"}},
		}},
		"recreations": {"they have a limit of their own", []turn{
			begin, {would(Impact{Recreated: 3}, withLimits(text("Thing", "b"), map[string]any{"maxRecreate": int64(2)})), "False LimitExceeded", []string{planned}},
		}},
		"nothing at all may be deleted": {"zero is a limit", []turn{
			begin, {would(Impact{Deleted: 1}, withLimits(text("Thing", "b"), map[string]any{"maxDelete": int64(0)})), "False LimitExceeded", []string{planned}},
		}},
		"undecided objects": {"they may be deleted", []turn{
			begin, {would(Impact{Deleted: 1, Undecided: 1}, withLimits(text("Thing", "b"), one)), "False LimitExceeded", []string{planned}},
		}},
		"a plan that is not complete": {"it says nothing about what is not in it, and is made again soon", []turn{
			begin, {would(Impact{Incomplete: "no worker"}, withLimits(text("Thing", "b"), one)), "False PlanFailed", []string{planned}},
			{func(s *site) { s.impact = Impact{} }, "False PlanFailed", nil},
			{func(s *site) { s.now = s.now.Add(planSoon) }, "True Served", []string{planned, "install", "swap Thing"}},
		}},
		"no plan": {"while the API server is away, nobody knows", []turn{
			begin, {func(s *site) { s.planErr = errors.New("away"); s.apply("p", withLimits(text("Thing", "b"), one)) }, "False PlanFailed", []string{planned}},
		}},
		"a plan that panics": {"the operator goes on", []turn{
			begin, {func(s *site) { s.panics = true; s.apply("p", withLimits(text("Thing", "b"), one)) }, "False PlanFailed", []string{planned}},
		}},
		"a restart": {"what was accepted last serves, and the plan is made again", []turn{
			begin, beyond, {func(s *site) { s.restart() }, "False Planning", []string{"install", "serve Thing outdated: "}},
			{func(*site) {}, "False LimitExceeded", []string{planned}},
			{apply(withLimits(text("Thing", "b"), two)), "True Served", []string{"install", "swap Thing"}},
		}},
		"a restart with what is served": {"it was accepted before", []turn{
			begin, {func(s *site) { s.restart(); s.impact = Impact{Deleted: 9} }, "True Served", []string{"install", "serve Thing"}},
		}},
		"what was accepted last cannot be used any more": {"all that the content would delete counts", []turn{
			begin, {func(s *site) {
				s.spoilt = s.states["p"].served.Digest()
				s.restart()
				s.impact = Impact{Deleted: 2}
				s.apply("p", withLimits(text("Thing", "b"), one))
			}, "False LimitExceeded", []string{"plan from nothing"}},
		}},
		"the check of what was accepted last is ended": {"that says nothing about it, so the content waits", []turn{
			begin, {func(s *site) {
				s.dying = s.states["p"].served.Digest()
				s.restart()
				s.impact = Impact{Deleted: 1}
				s.apply("p", withLimits(text("Thing", "b"), one))
			}, "False Planning", nil},
			{func(s *site) { s.now = s.now.Add(time.Second) }, "False Planning", nil},
			{func(s *site) { s.dying = ""; s.now = s.now.Add(examineAgain) }, "False Planning", []string{"install", "serve Thing outdated: "}},
			{func(*site) {}, "True Served", []string{planned, "install", "swap Thing"}},
		}},
		"paused": {"nothing is to be taken over", []turn{
			begin, {would(Impact{Deleted: 2}, withLimits(text("Thing", "b"), one, map[string]any{"paused": true})), "False Paused", nil},
		}},
		"an update by hand": {"a plan comes after the approval, and an approval is no limit", []turn{
			begin, {would(Impact{Deleted: 2}, withLimits(text("Thing", "b"), one, map[string]any{"update": "Manual"})), "False AwaitingApproval", nil},
			{func(s *site) {
				digest, _, _ := unstructured.NestedString(s.get("p").Object, "status", "sourceDigest")
				s.apply("p", withLimits(text("Thing", "b"), one, map[string]any{"update": "Manual", "approvedDigest": digest}))
			}, "False LimitExceeded", []string{planned}},
		}},
		"another kind": {"it is taken over only without resources", []turn{
			begin, {would(Impact{Deleted: 2}, withLimits(text("Gadget", "a"), one)), "True Served", []string{"install", "withdraw Thing", "serve Gadget"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.play(row.reason, row.turns)
		})
	}
}

// planned is the call of a plan that compares with what is served.
const planned = "plan from the version before"

func TestTheStatusSaysWhatALimitHoldsBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	limits := map[string]any{"maxDelete": int64(1)}
	s.apply("p", withLimits(text("Thing", "a"), limits))
	_ = s.step("p")
	s.impact = Impact{Resources: 3, Deleted: 2, Undecided: 1, Objects: []ImpactObject{{Object: "ConfigMap ns/x", Resource: "Thing ns/a", Outcome: "deleted"}}}
	s.apply("p", withLimits(text("Thing", "b"), limits))
	_ = s.step("p")
	st := s.states["p"]
	want := map[string]any{
		"digest": st.content.digest(), "from": st.served.Digest(), "resources": int64(3), "deleted": int64(2), "recreated": int64(0), "undecided": int64(1),
		"objects": []any{map[string]any{"object": "ConfigMap ns/x", "resource": "Thing ns/a", "outcome": "deleted"}},
	}
	got, _, _ := unstructured.NestedMap(s.get("p").Object, "status", "plan")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status.plan (-want +got):\n%s", diff)
	}
	message := "it would delete 2 objects, and 1 more of which that cannot be decided, and spec.limits.maxDelete is 1; status.plan lists them"
	for kind, want := range map[string]string{
		"Ready": "False LimitExceeded: " + message + "; " + st.served.Digest() + " is served", "Loaded": "False LimitExceeded: " + message,
		"CRDReady": "True Installed: ", "Stalled": "True LimitExceeded: " + message,
	} {
		if got := s.condition(kind); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", kind, got, want)
		}
	}
	before := s.get("p").GetResourceVersion()
	_ = s.step("p")
	if after := s.get("p").GetResourceVersion(); after != before {
		t.Error("a status that has not changed was written")
	}
	s.apply("p", withLimits(text("Thing", "a"), limits))
	_ = s.step("p")
	if plan, there, _ := unstructured.NestedMap(s.get("p").Object, "status", "plan"); there {
		t.Errorf("what is served has the plan %v", plan)
	}
}

func TestAPlanOfAMillionObjectsFitsIntoAStatus(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.apply("p", withLimits(text("Thing", "a"), map[string]any{"maxDelete": int64(1)}))
	_ = s.step("p")
	long := strings.Repeat("x", 1<<20)
	s.impact = Impact{Deleted: 1_000_000, Objects: make([]ImpactObject, 1000)}
	for i := range s.impact.Objects {
		s.impact.Objects[i] = ImpactObject{Object: long, Resource: long, Outcome: "deleted"}
	}
	s.apply("p", withLimits(text("Thing", "b"), map[string]any{"maxDelete": int64(1)}))
	_ = s.step("p")
	content, err := json.Marshal(s.get("p").Object["status"])
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > 100_000 {
		t.Errorf("the status has %d bytes", len(content))
	}
	s.impact = Impact{Incomplete: long}
	s.apply("p", withLimits(text("Thing", "c"), map[string]any{"maxDelete": int64(1)}))
	_ = s.step("p")
	if got := s.condition("Ready"); len(got) > 10_000 {
		t.Errorf("the message has %d bytes", len(got))
	}
}

func TestAPlanEndsWhenNobodyWaitsForIt(t *testing.T) {
	t.Parallel()
	limits := map[string]any{"maxDelete": int64(1)}
	for name, row := range map[string]struct {
		reason string
		do     func(s *site)
		ready  string
	}{
		"the Package is deleted": {"its resources stay with what is served", func(s *site) {
			u := s.get("p")
			if err := s.memory.Delete(s.t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
				s.t.Fatal(err)
			}
		}, "False Deleting"},
		"it is paused":              {"nothing is taken over", func(s *site) { s.apply("p", withLimits(text("Thing", "b"), limits, map[string]any{"paused": true})) }, "False Paused"},
		"its limits are taken away": {"nothing holds it back", func(s *site) { s.apply("p", text("Thing", "b")) }, "True Served"},
		"its content is another":    {"that is planned", func(s *site) { s.apply("p", withLimits(text("Thing", "c"), limits)) }, "False Planning"},
		"its content is broken": {"there is nothing to plan", func(s *site) {
			s.apply("p", withLimits(map[string]any{"source": map[string]any{"inline": map[string]any{"main.cue": "package p\nx: 1\nx: 2\n"}}}, limits))
		}, "False PackageBroken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.resources = []Resource{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "one"}}}
			s.apply("p", withLimits(text("Thing", "a"), limits))
			_ = s.step("p")
			s.blocked = true
			s.apply("p", withLimits(text("Thing", "b"), limits))
			_ = s.step("p")
			if got := s.ready("p"); got != "False Planning" {
				t.Fatalf("while it is being planned, Ready is %s", got)
			}
			of := s.states["p"].plan
			row.do(s)
			_ = s.step("p")
			select {
			case <-of.done:
			case <-time.After(time.Minute):
				t.Fatal("the plan goes on")
			}
			_ = s.step("p")
			if got := s.ready("p"); got != row.ready {
				t.Errorf("%s: Ready is %s, want %s", row.reason, got, row.ready)
			}
		})
	}
}

func TestTheReasonStaysWhileAPlanIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	limits := map[string]any{"maxDelete": int64(1)}
	s.apply("p", withLimits(text("Thing", "a"), limits))
	_ = s.step("p")
	s.impact = Impact{Deleted: 2}
	s.apply("p", withLimits(text("Thing", "b"), limits))
	_ = s.step("p")
	before := s.get("p").GetResourceVersion()
	s.blocked, s.now = true, s.now.Add(planAgain)
	_ = s.step("p")
	if after := s.get("p"); after.GetResourceVersion() != before {
		t.Errorf("the status has changed: %v", after.Object["status"])
	}
}

func TestOnePlanIsMadeAtATime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	limits := map[string]any{"maxDelete": int64(1)}
	for i := range 3 {
		s.apply(fmt.Sprint("p", i), withLimits(text(fmt.Sprint("Thing", i), "a"), limits))
		_ = s.step(fmt.Sprint("p", i))
	}
	s.take()
	s.blocked = true
	for i := range 3 {
		s.apply(fmt.Sprint("p", i), withLimits(text(fmt.Sprint("Thing", i), "b"), limits))
		_ = s.step(fmt.Sprint("p", i))
	}
	deadline := time.Now().Add(time.Minute)
	for len(s.peek()) == 0 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if diff := cmp.Diff([]string{planned}, s.take()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// peek returns the calls of the Server so far.
func (s *site) peek() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// commented returns a content with comments of so many bytes.
func commented(content map[string]any, bytes int) map[string]any {
	source, _ := content["source"].(map[string]any)
	files, _ := source["inline"].(map[string]any)
	for _, name := range []string{"one.cue", "two.cue"} { // one file may have 1 MiB
		files[name] = "package p\n\n// " + strings.Repeat("x", bytes/2) + "\n"
	}
	return content
}
