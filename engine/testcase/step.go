package testcase

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cuelang.org/go/cue"
	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
	"operetta.dev/engine/render"
	"operetta.dev/engine/status"
)

// How far the operator acts in a step.
const (
	runToRest = "rest"
	runOnce   = "once"
	runNever  = "never"
)

// A step is one step of a test: what changes, how far the operator acts then, and what is wanted of the result.
type step struct {
	state

	// Delete is true if the custom resource is deleted.
	Delete bool `json:"delete"`
	// Run is how far the operator acts.
	Run string `json:"run"`
	// Controllers are when the simulated controllers act.
	Controllers string `json:"controllers"`
	// Faults are what fails meanwhile.
	Faults InjectedFaults `json:"faults"`

	number int
	value  cue.Value
}

// String names the step, as in "steps[1]".
func (s step) String() string { return fmt.Sprintf("steps[%d]", s.number) }

// stepFields are the fields of a step that have to be concrete.
var stepFields = []string{"cr", "live", "others", "config", "delete", "run", "controllers", "faults"}

// steps returns the steps of the test. It errors with Faults where a value is not concrete.
func (t Test) steps() ([]step, error) {
	v := t.value.LookupPath(cue.ParsePath("steps"))
	if !v.Exists() {
		return nil, nil
	}
	list, err := v.List()
	if err != nil {
		return nil, fmt.Errorf("steps: %w", err)
	}
	var out []step
	for list.Next() {
		s := step{number: len(out), value: list.Value()}
		written := map[string]any{}
		for _, name := range stepFields {
			field := s.value.LookupPath(cue.ParsePath(name))
			if !field.Exists() {
				continue
			}
			var value any
			if err := decode(s.String(), field, &value); err != nil {
				return nil, err
			}
			written[name] = value
		}
		data, err := json.Marshal(written)
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// controllers returns when the simulated controllers act in the step.
func (s step) controllers() dryrun.Controllers {
	if s.Controllers == "never" {
		return dryrun.ActNever
	}
	return dryrun.ActPromptly
}

// A run is a test at one of its steps.
type run struct {
	session *render.Session
	program *program.Program
	// others are the objects of others as they were written last, by their names in the test.
	others map[string]map[string]any
	writes map[cluster.Operation]int
	// missed says which faults of the step have not happened, or is "".
	missed string
	// covered notes what the decisions show.
	covered *coverage
}

// newRun returns a test before its first step.
func newRun(t Test, session *render.Session, p *program.Program, in render.Input) *run {
	r := &run{session: session, program: p, others: map[string]map[string]any{}}
	for i, name := range fieldNames(t.value.LookupPath(cue.ParsePath("given.others"))) {
		r.others[name] = in.Manifests[i]
	}
	return r
}

// take takes a step, and returns where its result is not as it is wanted.
func (r *run) take(ctx context.Context, s step) ([]Difference, error) {
	s.Faults.Begin(r.session.World())
	err := r.change(s)
	if err == nil {
		err = r.act(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	out, err := r.session.Preview(ctx)
	if err != nil {
		return nil, err
	}
	r.covered.see(out)
	c := &comparison{redactor: out.Redactor, secrets: secretsOf(out), prefix: s.String() + ".", index: r.program.Syntax()}
	w := want{value: s.value.LookupPath(cue.ParsePath("want")), prefix: c.prefix}
	if err := c.decision(w, out); err != nil {
		return nil, err
	}
	if r.missed != "" {
		c.addf(program.PositionOf(s.value.LookupPath(cue.ParsePath("faults"))), "faults", "%s", r.missed)
	}
	ready, _ := r.session.World().Ready(r.session.Resource())
	c.flag(w, "ready", ready)
	c.flag(w, "gone", out.CR == nil)
	stored, _, _ := unstructured.NestedMap(out.CR, "status")
	c.phase(w, status.PhaseOf(stored))
	got := map[string]map[string]any{"writes": r.counted()}
	if w.part("live").Exists() {
		got["live"] = r.live(c)
	}
	c.parts(w, got)
	return c.found, nil
}

// change writes what the step says that others write.
func (r *run) change(s step) error {
	world := r.session.World()
	for _, component := range slices.Sorted(maps.Keys(s.Live)) {
		for _, object := range slices.Sorted(maps.Keys(s.Live[component])) {
			if err := r.changeLive(component, object, s.Live[component][object]); err != nil {
				return fmt.Errorf("live.%s.%s: %w", component, object, err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Others)) {
		if err := r.changeOther(name, s.Others[name]); err != nil {
			return fmt.Errorf("others.%s: %w", name, err)
		}
	}
	if s.Config != nil {
		if err := r.session.Configure(r.program, s.Config); err != nil {
			return fmt.Errorf("config: %w", err)
		}
	}
	if s.CR != nil {
		if err := r.changeObject("person", r.session.Resource(), s.CR); err != nil {
			return fmt.Errorf("cr: %w", err)
		}
	}
	if s.Delete {
		return world.Delete(r.session.Resource())
	}
	return nil
}

// changeLive changes an object of the resource, or deletes it if there is no change.
func (r *run) changeLive(component, object string, change map[string]any) error {
	ref, known := r.session.Ref(component, object)
	switch {
	case !known:
		return errors.New("the package has not rendered such an object")
	case change == nil:
		return r.session.World().Delete(ref)
	}
	return r.changeObject("controller", ref, change)
}

// changeObject merges a change into an object.
func (r *run) changeObject(manager string, ref cluster.Ref, change map[string]any) error {
	u := r.session.World().Get(ref)
	if u == nil {
		return fmt.Errorf("there is no %s", ref)
	}
	merged, err := mergePatch(u.Object, change)
	if err != nil {
		return err
	}
	_, err = r.session.World().Cluster.Put(manager, &unstructured.Unstructured{Object: merged})
	return err
}

// changeOther changes an object of others, or creates it, or deletes it if there is no change.
func (r *run) changeOther(name string, change map[string]any) error {
	before := r.others[name]
	if change == nil {
		if before == nil {
			return errors.New("there is no such object")
		}
		ref, err := r.session.Put(before)
		if err != nil {
			return err
		}
		delete(r.others, name)
		return r.session.World().Delete(ref)
	}
	created := before == nil
	if created {
		before = map[string]any{}
	}
	merged, err := mergePatch(before, change)
	if err != nil {
		return err
	}
	if wrong := missingIdentity(merged); len(wrong) > 0 {
		if created {
			return fmt.Errorf("given.others has no such object, so that it is a new one, and %s (%s)", wrong[0].Message, wrong[0].Hint)
		}
		return fmt.Errorf("%s (%s)", wrong[0].Message, wrong[0].Hint)
	}
	r.others[name] = merged
	_, err = r.session.Put(merged)
	return err
}

// mergePatch returns an object with a merge patch (RFC 7386): null removes a field.
func mergePatch(object, change map[string]any) (map[string]any, error) {
	a, errA := json.Marshal(object)
	b, errB := json.Marshal(change)
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	data, err := jsonpatch.MergePatch(a, b)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = json.Unmarshal(data, &out)
	return out, err
}

// act lets the operator act as far as the step says, and fail as it says.
func (r *run) act(ctx context.Context, s step) (err error) {
	world := r.session.World()
	r.writes = map[cluster.Operation]int{}
	show := func(step dryrun.Step) {
		r.covered.ran(step)
		for _, e := range step.Changes {
			if e.Ref.Identity() != step.Resource.Identity() {
				r.writes[e.Operation]++
			}
		}
	}
	world.SetControllers(s.controllers())
	r.missed, err = s.Faults.While(world, func() error {
		switch s.Run {
		case runToRest:
			return s.Faults.Rest(ctx, world, show)
		case runOnce:
			return world.Round(ctx, show)
		case runNever:
		}
		return nil
	})
	return err
}

// counted returns how many objects the operator has written in the step.
func (r *run) counted() map[string]any {
	return map[string]any{
		"created": int64(r.writes[cluster.Created]), "updated": int64(r.writes[cluster.Updated]), "deleted": int64(r.writes[cluster.Deleted]),
	}
}

// live returns the objects in the cluster that were rendered at some time, by component and name. One that does not
// exist is null.
func (r *run) live(c *comparison) map[string]any {
	all := map[string]any{}
	for at, ref := range r.session.Refs() {
		component, name := at[0], at[1]
		if object.MayBeSecret(ref.Kind) {
			addSecret(c.secrets, "live", component, name)
		}
		in(all, component)[name] = nil
		if u := r.session.World().Get(ref); u != nil {
			u.SetManagedFields(nil)
			in(all, component)[name] = u.Object
		}
	}
	return all
}

// flag compares something that is true or false.
func (c *comparison) flag(w want, name string, got bool) {
	if v := w.part(name); v.Exists() {
		c.compareScalar(cue.MakePath(cue.Str(name)), v, got)
	}
}
