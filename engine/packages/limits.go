package packages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"operetta.dev/engine/object"
	"operetta.dev/engine/status"
)

// A Planner says what a version of a package would do before it is served.
type Planner interface {
	// Plan returns what a candidate would delete and recreate of the objects of all live resources, and what the served
	// version would not. Without a served version, all that the candidate would delete and recreate counts. Progress is
	// called with how many resources are done. All is read as an account, or as the process itself for none. It errors if there is no
	// plan, as while the API server is away.
	Plan(ctx context.Context, as object.Account, served *Candidate, next Candidate, progress func(done, all int)) (Impact, error)
}

// An Impact is what a version of a package would delete and recreate.
type Impact struct {
	// Resources is how many resources were planned.
	Resources int
	// Deleted, Recreated and Undecided count objects. Those that are undecided may be deleted or recreated.
	Deleted, Recreated, Undecided int
	// Objects are the first of these.
	Objects []ImpactObject
	// Incomplete says why a later plan may say more, or is "".
	Incomplete string
}

// An ImpactObject is an object that a version would delete or recreate.
type ImpactObject struct {
	// Object and Resource are as a person writes them, and Outcome is what happens to the object.
	Object, Resource, Outcome string
}

// MaxImpactObjects is how many objects of a plan the status of a Package lists.
const MaxImpactObjects = 20

// A planning is the plan of a content.
type planning struct {
	background

	// from and digest are those of the version that is served, or "", and of the content.
	from, digest string
	// at is when it ended, and tries is how many plans of the same there were before.
	at     time.Time
	tries  int
	impact Impact
	err    error
	// passed says that the content was within its limits by this plan. It is about to be taken over, unless something else
	// keeps it from that.
	passed bool
	// before is the plan of the same before this one, which holds the content back until this one has ended.
	before *planning
	// planned and all are how many resources are done, and how many there are.
	planned, all atomic.Int64
}

// endPlan ends and forgets the plan of a Package.
func (s *state) endPlan() {
	if s.plan != nil {
		s.plan.cancel()
		s.plan = nil
	}
}

// limited reports whether a Package has limits.
func (l Limits) limited() bool { return l.MaxDelete != nil || l.MaxRecreate != nil }

// exceeded returns which limits a plan exceeds, as a message, or "".
func (l Limits) exceeded(i Impact) string {
	var out []string
	for _, limit := range []struct {
		name, verb string
		most       *int64
		n          int
	}{{"maxDelete", "delete", l.MaxDelete, i.Deleted}, {"maxRecreate", "recreate", l.MaxRecreate, i.Recreated}} {
		if limit.most == nil || int64(limit.n)+int64(i.Undecided) <= *limit.most {
			continue
		}
		text := fmt.Sprintf("it would %s %d objects", limit.verb, limit.n)
		if limit.n == 1 {
			text = fmt.Sprintf("it would %s 1 object", limit.verb)
		}
		if i.Undecided > 0 {
			text += fmt.Sprintf(", and %d more of which that cannot be decided", i.Undecided)
		}
		out = append(out, fmt.Sprintf("%s, and spec.limits.%s is %d", text, limit.name, *limit.most))
	}
	return strings.Join(out, "; ")
}

// withinLimits returns why a content is not taken over because of the limits of its Package, or nil. It reports whether
// the content needs a plan. The first content of a Package needs none, and neither does what was accepted last.
func (r *Reconciler) withinLimits(ctx context.Context, p Package, s *state, next Candidate) (*problem, bool) {
	if !p.Limits.limited() {
		return nil, false
	}
	digest := s.content.digest()
	last, err := r.keeper().lastGood(ctx, p, s)
	if err != nil {
		return &problem{stage: loading, reason: ReasonNotKept, message: err.Error(), err: err}, false
	}
	if last == nil && s.served == nil || s.served == nil && last.digest == digest {
		return nil, false
	}
	var served *Candidate
	switch {
	case s.served != nil && s.served.GroupVersionKind().GroupKind() != next.Program.GroupVersionKind().GroupKind():
		return nil, false // it is taken over only once no resource is left
	case s.served != nil:
		served = &Candidate{Program: s.served, CRD: s.crd}
	case !r.unusable(p, s, last):
		return waitsForPlan("the version that was accepted last is not served yet", servedAgain), false
	}
	return planMaker{r.Planner, r.Enqueue, r.Now, &r.plans}.planOf(ctx, p, s, served, next), true
}

// unusable reports whether what was accepted last will not be served: more signatures are demanded by now than it was verified
// by, or its examination has found that it cannot be. One that was ended has found nothing, and is repeated.
func (r *Reconciler) unusable(p Package, s *state, last *revision) bool {
	e := s.exams[last.digest]
	return r.trust().accepts(p, last.provenance) != nil || e != nil && e.ended() && e.foundFaults()
}

// beingPlanned is the message of a content whose plan is being made.
const beingPlanned = "what the content would delete and recreate is being planned"

// waitsForPlan returns why a content waits for its plan.
func waitsForPlan(message string, again time.Duration) *problem {
	return &problem{stage: holding, reason: ReasonPlanning, message: message, again: again, passes: true}
}

// A planMaker makes the plans of contents whose Packages have limits.
type planMaker struct {
	planner Planner
	enqueue func(name string)
	now     func() time.Time
	slots   *slots
}

// planOf returns why the plan of a content holds it back, or nil.
func (m planMaker) planOf(ctx context.Context, p Package, s *state, served *Candidate, next Candidate) *problem {
	from := ""
	if served != nil {
		from = served.Program.Digest()
	}
	known := s.plan
	if known == nil || known.from != from || known.digest != next.Program.Digest() {
		s.endPlan()
		return m.beginPlan(ctx, p, s, &planning{from: from}, served, next)
	}
	if !known.ended() {
		return known.meanwhile(p.Limits)
	}
	wrong, age := known.problem(p.Limits), m.now().Sub(known.at)
	switch {
	case wrong == nil && (age < planFresh || known.passed && age < planAgain):
		known.passed = true
		return nil
	case wrong != nil && age < wrong.again:
		wrong.again -= age
		return wrong
	case wrong == nil: // somebody has raised a limit
		return m.beginPlan(ctx, p, s, &planning{from: from}, served, next)
	}
	known.before = nil
	return m.beginPlan(ctx, p, s, &planning{from: from, tries: known.tries + 1, before: known}, served, next)
}

// meanwhile returns why a content is held back while its plan is being made: for the reason before, if there is one.
func (p *planning) meanwhile(l Limits) *problem {
	if p.before != nil {
		if wrong := p.before.problem(l); wrong != nil {
			wrong.again = planProgress
			return wrong
		}
	}
	return waitsForPlan(beingPlanned, planProgress)
}

// problem returns why a plan holds a content back, or nil, and when to make it again.
func (p *planning) problem(l Limits) *problem {
	incomplete := p.impact.Incomplete
	if p.err != nil {
		incomplete = p.err.Error()
	}
	if incomplete != "" {
		return &problem{stage: holding, reason: ReasonPlanFailed, again: doubled(planSoon, planAgain, p.tries), message: "what the content would delete and recreate cannot be planned: " + incomplete}
	}
	if beyond := l.exceeded(p.impact); beyond != "" {
		return &problem{stage: holding, reason: ReasonLimitExceeded, again: doubled(planAgain, maxPlanDelay, p.tries), person: true, message: beyond + "; status.plan lists them"}
	}
	return nil
}

// beginPlan begins a plan, whose end is an event, and returns that the content waits for it.
func (m planMaker) beginPlan(ctx context.Context, p Package, s *state, made *planning, served *Candidate, next Candidate) *problem {
	made.digest = next.Program.Digest()
	ctx, made.background = newBackground(ctx)
	s.endPlan()
	s.plan = made
	go func() {
		defer made.cancel()
		made.err = m.slots.run(ctx, maxPlans, planLimit, func(ctx context.Context) (err error) {
			made.impact, err = m.protectedPlan(ctx, p.account, served, next, func(done, all int) {
				made.planned.Store(int64(done))
				made.all.Store(int64(all))
			})
			return err
		})
		made.at = m.now()
		close(made.done)
		m.enqueue(p.Name)
	}()
	return made.meanwhile(p.Limits)
}

// protectedPlan calls the planner. A panic is an error.
func (m planMaker) protectedPlan(ctx context.Context, as object.Account, served *Candidate, next Candidate, progress func(done, all int)) (out Impact, err error) {
	defer func() {
		if recover() != nil { // its text may have a value of a Secret
			err = errors.New("planning has panicked; please report this")
		}
	}()
	return m.planner.Plan(ctx, as, served, next, progress)
}

// planStatus returns what the status says of the plan of a content that is held back, or nil.
func (s *state) planStatus(out *result) map[string]any {
	if s.plan == nil || out.problem == nil {
		return nil
	}
	shown := s.plan
	if !shown.ended() && shown.before != nil {
		shown = shown.before
	}
	after := map[string]any{"digest": shown.digest}
	if shown.from != "" {
		after["from"] = shown.from
	}
	if !shown.ended() {
		after["planned"], after["resources"] = shown.planned.Load(), shown.all.Load()
		return after
	}
	i := shown.impact
	if shown.err != nil {
		return after
	}
	after["resources"], after["deleted"], after["recreated"], after["undecided"] = int64(i.Resources), int64(i.Deleted), int64(i.Recreated), int64(i.Undecided)
	var objects []any
	for _, o := range i.Objects[:min(len(i.Objects), MaxImpactObjects)] {
		objects = append(objects, map[string]any{
			"object": status.Shorten(o.Object, maxFaultText), "resource": status.Shorten(o.Resource, maxFaultText), "outcome": o.Outcome,
		})
	}
	if len(objects) > 0 {
		after["objects"] = objects
	}
	return after
}
