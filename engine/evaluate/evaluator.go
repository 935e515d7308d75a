package evaluate

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/utils/lru"

	"operetta.dev/engine/compile"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
)

// Options are the settings of an Evaluator. The zero value has a default for each.
type Options struct {
	// Backend runs CUE; by default in this process.
	Backend Backend
	// Templates says whether there are templates; "" is TemplatesOn.
	Templates Templates
	// Resources is how many resources keep what CUE said last of them.
	Resources int
	// CheckEvery is how many answers of templates there are for one that is compared with CUE's.
	CheckEvery int
	// Suspect reports whether resources of a namespace were lately too much to evaluate; their sessions
	// are not compiled. By default none is.
	Suspect func(namespace string) bool
	// Metrics count; nil counts nothing.
	Metrics *Metrics
	// Differs is called when a template gave another result than CUE of a session, after Epoch
	// has another value.
	Differs func(ctx context.Context, s program.Session)
	// Now is the clock.
	Now func() time.Time
}

// suspected is the reason of a session that is not compiled because its namespace is suspect.
const suspected fallback = "suspect"

// Templates says whether an Evaluator makes templates.
type Templates string

// Whether there are templates.
const (
	TemplatesOn  Templates = "on"
	TemplatesOff Templates = "off"
	// TemplatesChecked makes CUE evaluate each resource at least once, and again when its specification, its
	// inputs or the configuration change, and compares what a template says of it. So no template decides
	// whether a specification is valid: templates answer when only live objects have changed.
	TemplatesChecked Templates = "checked"
)

const (
	// defaultResources is for rollouts of about 30 KiB.
	defaultResources = 1000
	// templateBytes bounds the memory of the templates of a package. It is room for some 200 templates of eight objects each.
	templateBytes = 16 << 20
	// defaultCheckEvery costs 2 us for each answer, where CUE takes 2 ms.
	defaultCheckEvery = 1000
	// compareEvery is how many answers of templates are confirmed for one that is compared with all that CUE says,
	// which costs two evaluations if there are Secrets.
	compareEvery = 20
	// checkedPerResource is how many more resources are known to be checked than have an answer remembered: the
	// version of a session takes 32 bytes.
	checkedPerResource = 10
	// checkedAssemblies is how many templates that are made of parts of others are compared with CUE before they answer.
	// After that it is one of compareEvery.
	checkedAssemblies = 20
	// maxDifferences is how many templates of a package may say something else than CUE until it has none
	// any more. One or two are for shapes that are odd, as a tenant may make them. If a third one differs, what the package
	// says in all its shapes is probably wrong.
	maxDifferences = 3
)

// An Evaluator is a Program that evaluates without CUE what it can. It is safe for concurrent use.
type Evaluator struct {
	*program.Program
	options Options
	memo    memo
	// checked has, for each resource, the version of its session that CUE has evaluated last.
	checked *lru.Cache
	cache   *cache
	parts   *partStore
	metrics packageMetrics
	// number is the number of this Evaluator in the process.
	number int64
	// differences is how many templates have gave another result than CUE.
	differences atomic.Int64
	// hits counts the answers of templates.
	hits atomic.Int64
	// assembled counts the templates that were made of parts of others.
	assembled atomic.Int64
	// confirmations counts the answers of templates that CUE was asked to confirm.
	confirmations atomic.Int64
	// predicted counts the sessions of which a template could predict something.
	predicted atomic.Int64
}

// created counts Evaluators.
var created atomic.Int64

// New returns an Evaluator of a package.
func New(p *program.Program, o Options) *Evaluator {
	if o.Backend == nil {
		o.Backend = InProcess(p)
	}
	o.Resources, o.CheckEvery = cmp.Or(o.Resources, defaultResources), cmp.Or(o.CheckEvery, defaultCheckEvery)
	if o.Suspect == nil {
		o.Suspect = func(string) bool { return false }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := o.Metrics.of(p.Name())
	e := &Evaluator{
		Program: p, options: o, metrics: m, number: created.Add(1),
		memo:    memo{lru.New(o.Resources)},
		checked: lru.New(checkedPerResource * o.Resources),
		cache:   newCache(compile.New(p).Pins(), templateBytes, m),
		parts:   newPartStore(p.Views()),
	}
	e.cache.removed = e.parts.remove
	return e
}

// Evaluate is EvaluateContext with a context that does not end.
func (e *Evaluator) Evaluate(s program.Session) (program.Rollout, error) {
	return e.EvaluateContext(context.Background(), s)
}

// Locate is LocateContext with a context that does not end.
func (e *Evaluator) Locate(s program.Session, component, object, path string) fault.Position {
	return e.LocateContext(context.Background(), s, component, object, path)
}

// LocateContext returns what Program.Locate returns.
func (e *Evaluator) LocateContext(ctx context.Context, s program.Session, component, object, path string) fault.Position {
	return e.options.Backend.Locate(ctx, s, component, object, path)
}

// ReviewContext returns what Program.Review returns.
func (e *Evaluator) ReviewContext(ctx context.Context, s program.Session) (program.Review, error) {
	return e.options.Backend.Review(ctx, s)
}

// ConvertContext returns what Conversions.ConvertResource returns.
func (e *Evaluator) ConvertContext(ctx context.Context, c program.Conversion) (map[string]any, error) {
	return e.options.Backend.Convert(ctx, c)
}

// EvaluateContext returns what Program.Evaluate returns. The rollout may be shared with other callers, and
// must not be changed.
func (e *Evaluator) EvaluateContext(ctx context.Context, s program.Session) (program.Rollout, error) {
	began := time.Now()
	out, by, err := e.evaluate(ctx, s)
	e.metrics.evaluated(by, time.Since(began))
	return out, err
}

// evaluate returns what Program.Evaluate returns, and how it was found out.
func (e *Evaluator) evaluate(ctx context.Context, s program.Session) (program.Rollout, string, error) {
	view := e.Views().Of(s)
	if r, ok := e.memo.get(s, view); ok {
		return r, byMemo, nil
	}
	at, why := place{}, off
	if e.options.Templates != TemplatesOff {
		var r program.Rollout
		at = e.placeOf(s, view)
		if e.options.Templates == TemplatesChecked && !e.isChecked(s) {
			r, err := e.check(ctx, s, view, at)
			return r, byCUE, err
		}
		if r, why = e.byTemplate(ctx, s, view, at); why == "" {
			return r, byTemplate, nil
		}
	}
	r, err := e.byCUE(ctx, s, view, at, why)
	return r, byCUE, err
}

// placeOf returns where the template for a session is. If there is none, it may be one that is made of parts of others.
func (e *Evaluator) placeOf(s program.Session, view program.View) place {
	at := e.cache.placeOf(view, s.Tenant(), e.options.Now())
	if e.differences.Load() >= maxDifferences || e.cache.known(at.key) {
		return at
	}
	t, pins := e.parts.assemble(view, at.pins)
	if t == nil {
		return at
	}
	e.metrics.assembled()
	return e.cache.assembled(at, view, pins, t)
}

// byCUE returns what CUE says of a session that has no answer of a template for a reason, and makes a template if
// there is none yet.
func (e *Evaluator) byCUE(ctx context.Context, s program.Session, view program.View, at place, why fallback) (program.Rollout, error) {
	if why == unseen && e.options.Suspect(at.namespace) {
		e.cache.compiled(at, view, compile.Result{}) // others may compile
		why = suspected
	}
	e.metrics.fellBack(why)
	if why == unseen {
		return e.compile(ctx, s, view, at)
	}
	out, err := e.options.Backend.Evaluate(ctx, s)
	return e.remember(s, view, out, err)
}

// Predict returns what a template says of a session that CUE has not evaluated since the process started, or since its
// resource was changed, and whether there is one. Evaluate would ask CUE to confirm that, so nothing may be written because
// of it. One of some sessions has to be confirmed all the same.
func (e *Evaluator) Predict(s program.Session) (program.Rollout, bool) {
	if e.options.Templates != TemplatesChecked {
		return program.Rollout{}, false
	}
	began := time.Now()
	view := e.Views().Of(s)
	if _, remembered := e.memo.get(s, view); remembered || e.isChecked(s) {
		return program.Rollout{}, false
	}
	at := e.placeOf(s, view)
	r, has := e.expected(e.held(at), view)
	if !has || at.assembled || e.predicted.Add(1)%compareEvery == 0 {
		return program.Rollout{}, false
	}
	e.metrics.evaluated(byTemplate, time.Since(began))
	return r, true
}

// held returns the template at a place, or nil if there is none.
func (e *Evaluator) held(at place) *compile.Template {
	if e.differences.Load() >= maxDifferences {
		return nil
	}
	return e.cache.held(at)
}

// isChecked reports whether CUE has evaluated a session with the same resource, inputs and configuration.
func (e *Evaluator) isChecked(s program.Session) bool {
	version, known := e.checked.Get(uidOf(s))
	return known && version == e.Version(s)
}

// check returns what CUE says of a session, and compares it with what a template would have said. If there is no
// difference, templates may answer for the resource until somebody changes it.
func (e *Evaluator) check(ctx context.Context, s program.Session, view program.View, at place) (program.Rollout, error) {
	t, why := e.template(at)
	var out program.Rollout
	var err error
	if expected, has := e.expected(t, view); has {
		e.metrics.fellBack(unchecked)
		out, err = e.confirm(ctx, s, view, at, expected)
	} else {
		if why == "" {
			why = unchecked
		}
		out, err = e.byCUE(ctx, s, view, at, why)
	}
	if inconclusive(err) {
		return out, err
	}
	if uid := uidOf(s); err == nil && uid != "" && len(out.Invalid) == 0 && len(out.Misconfigured) == 0 {
		e.checked.Add(uid, e.Version(s))
	}
	return out, err
}

// expected returns what a template says of a view, and whether it says anything.
func (e *Evaluator) expected(t *compile.Template, view program.View) (program.Rollout, bool) {
	if t == nil {
		return program.Rollout{}, false
	}
	r, err := t.Eval(view.Values())
	return r, err == nil && e.Views().WithinLimits(view, r)
}

// confirm returns what CUE says of a session, of which a template says what is expected. One of some confirmations compares
// all of it. The others do not ask again which messages rest on a Secret: a template with one that may is not made.
func (e *Evaluator) confirm(ctx context.Context, s program.Session, view program.View, at place, expected program.Rollout) (program.Rollout, error) {
	var out program.Rollout
	var same bool
	var err error
	if e.confirmations.Add(1)%compareEvery == 0 {
		out, err = e.options.Backend.Evaluate(ctx, s)
		same = err == nil && reflect.DeepEqual(out, expected)
	} else {
		out, same, err = e.options.Backend.Confirm(ctx, s, expected)
	}
	if !same && !inconclusive(err) {
		e.differ(ctx, s, at)
	}
	return e.remember(s, view, out, err)
}

// template returns the template at a place, or the reason why there is none.
func (e *Evaluator) template(at place) (*compile.Template, fallback) {
	if e.differences.Load() >= maxDifferences {
		return nil, differed
	}
	return e.cache.template(at)
}

// byTemplate returns the rollout that a template has for a session, or the reason why there is none.
func (e *Evaluator) byTemplate(ctx context.Context, s program.Session, view program.View, at place) (program.Rollout, fallback) {
	t, why := e.template(at)
	if why != "" {
		return program.Rollout{}, why
	}
	r, err := t.Eval(view.Values())
	if err != nil {
		return program.Rollout{}, guarded
	}
	if !e.Views().WithinLimits(view, r) {
		return program.Rollout{}, beyondLimit
	}
	if e.isCheckDue(at) && !e.agrees(ctx, s, r, at) {
		return program.Rollout{}, differed
	}
	e.memo.forget(s)
	return r, ""
}

// isCheckDue reports whether the answer of the template at a place is to be compared with CUE's: the first one of one that has
// just been assembled, at first always and later of one of some, and one of some of the others.
func (e *Evaluator) isCheckDue(at place) bool {
	due := e.hits.Add(1)%int64(e.options.CheckEvery) == 0
	if !at.assembled {
		return due
	}
	n := e.assembled.Add(1)
	return due || n <= checkedAssemblies || n%compareEvery == 0
}

// agrees reports whether CUE says the same of a session as the template at a place.
func (e *Evaluator) agrees(ctx context.Context, s program.Session, r program.Rollout, at place) bool {
	want, err := e.options.Backend.Evaluate(ctx, s)
	if inconclusive(err) || err == nil && reflect.DeepEqual(want, r) {
		return true
	}
	e.differ(ctx, s, at)
	return false
}

// differ drops the template at a place, which has said something else of a session than CUE, and all of them if it is
// not the first.
func (e *Evaluator) differ(ctx context.Context, s program.Session, at place) {
	e.cache.drop(at)
	e.parts.stop()
	if e.differences.Add(1) >= maxDifferences {
		e.cache.clear()
	}
	e.metrics.differed()
	if e.options.Differs != nil {
		e.options.Differs(ctx, s)
	}
}

// Epoch returns a text that changes when it turns out that an earlier answer may have been wrong: what was concluded
// from answers of another epoch has to be checked again. No two Evaluators share an epoch, because a package may
// return to an earlier version.
func (e *Evaluator) Epoch() string {
	return strconv.FormatInt(e.number, 10) + "." + strconv.FormatInt(e.differences.Load(), 10)
}

// compile returns what CUE says of a session, and makes a template of it for others.
func (e *Evaluator) compile(ctx context.Context, s program.Session, view program.View, at place) (program.Rollout, error) {
	var result compile.Result
	// Nothing else of the package is compiled until then, and a reconcile survives a panic.
	defer func() {
		e.cache.compiled(at, view, result)
		e.keepParts(view, result)
	}()
	result, err := e.options.Backend.Compile(ctx, s, at.pins)
	e.metrics.compiled(result, err)
	if err == nil {
		err = result.Err
	}
	return e.remember(s, view, result.Rollout, err)
}

// keepParts keeps the parts of a template for others, as long as the template is there.
func (e *Evaluator) keepParts(view program.View, r compile.Result) {
	if r.Template == nil {
		return
	}
	e.parts.add(view, r.Pins, r.Template)
	if !e.cache.has(r.Template) {
		e.parts.remove(r.Template) // it was evicted before its parts were there to be removed
	}
}

// remember remembers what CUE said of a session.
func (e *Evaluator) remember(s program.Session, view program.View, r program.Rollout, err error) (program.Rollout, error) {
	if err == nil {
		e.memo.add(s, view, r)
	}
	return r, err
}

// inconclusive reports whether an error of CUE says nothing of the session: it took too long this time, or
// the process ends.
func inconclusive(err error) bool {
	_, faulty := errors.AsType[fault.Faults](err)
	_, panicked := errors.AsType[*program.PanicError](err)
	return err != nil && !faulty && !panicked
}
