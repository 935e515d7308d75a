package shadow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/dryrun/diff"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/plan"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
	"operetta.dev/engine/render"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
	"operetta.dev/engine/verify"
)

// settings are what a comparison needs besides the resource.
type settings struct {
	// from is where it reads, and version the package.
	from    dryrun.Source
	version plan.Version
	// configMap names the configuration; its zero value is none.
	configMap types.NamespacedName
	// dependents are the objects that belong to the resource, as far as they are known.
	dependents []dependent
	ignore     []Ignored
	now        time.Time
}

// A dependent is an object that belongs to a resource, by a reference or a label.
type dependent struct {
	cluster.Ref

	// component is what the mark of another operator of this engine says, or "".
	component string
}

// A comparison is one resource while it is compared.
type comparison struct {
	settings

	cr      *unstructured.Unstructured
	ref     cluster.Ref
	owner   ownership.Owner
	source  *source
	preview reconcile.Preview
	mask    *diff.Mask
	out     Resource
	// wanted are the objects that the package may render, whether they are decided or not.
	wanted map[cluster.Ref]bool
}

// maxPasses bounds how often a resource is previewed because an object was read as an input before it was rendered.
const maxPasses = 3

// compare compares one resource, and returns also what it has read. It errors only if a later comparison may say
// more although nothing changes: nobody was there to evaluate, or the context has ended.
func compare(ctx context.Context, s settings, cr *unstructured.Unstructured) (Resource, *reads, error) {
	c := &comparison{settings: s, cr: cr, ref: cluster.RefOf(cr), mask: &diff.Mask{}, wanted: map[cluster.Ref]bool{}}
	reach := s.version.Evaluator().Reach()
	c.owner = ownership.Owner{Ref: c.ref, UID: cr.GetUID(), Reach: &reach}
	c.source = newSource(s.from, c.owner)
	c.out = Resource{
		Package: s.version.Program.Name(), APIVersion: cr.GetAPIVersion(), Kind: c.ref.Kind, Namespace: c.ref.Namespace, Name: c.ref.Name,
		Paused: cr.GetAnnotations()[reconcile.AnnotationPaused] == "true",
	}
	if cr.GetDeletionTimestamp() != nil {
		c.out.State = Deleting
		return c.out, c.source.reads, nil
	}
	err := c.run(ctx)
	if _, unavailable := errors.AsType[*program.UnavailableError](err); unavailable || ctx.Err() != nil {
		return c.out, c.source.reads, err
	}
	if err != nil {
		c.out.State = Unreadable
		c.out.Problems = []plan.Problem{{Message: c.mask.Text(err.Error())}}
	}
	return c.out, c.source.reads, nil
}

// run previews the resource and compares what comes of that.
func (c *comparison) run(ctx context.Context) error {
	if err := c.look(ctx); err != nil {
		return err
	}
	if c.isFaulty() {
		c.out.classify()
		return nil
	}
	c.faults()
	for _, p := range c.preview.Components {
		if err := c.component(ctx, p); err != nil {
			return err
		}
	}
	for _, h := range c.preview.Rollout.Hooks {
		c.out.Hooks = append(c.out.Hooks, c.mask.Text(h.Component.Name))
	}
	c.unrendered()
	if err := c.findRenamed(ctx); err != nil {
		return err
	}
	c.out.classify()
	return nil
}

// look previews the resource. An object that was read as an input before it was known to be rendered is read again
// as an object of the resource.
func (c *comparison) look(ctx context.Context) error {
	for range maxPasses {
		w := dryrun.New(c.configMap, c.version.Program)
		w.ReadThrough(c.source, c.now, false)
		w.EvaluateWith(c.ref.GroupKind(), &noting{Package: c.version.Evaluator(), source: c.source})
		if _, err := w.Put(c.servable()); err != nil {
			return err
		}
		var err error
		c.preview, err = w.Preview(ctx, c.ref)
		c.mask.Learn(w.Cluster.Objects()...)
		c.mask.Learn(c.source.all()...)
		if err != nil {
			return err
		}
		if !c.source.missed() {
			return nil
		}
	}
	return nil
}

// servable returns the resource as the engine would first see it. The status of another operator is not the
// engine's; one that the engine has written keeps its inventory.
func (c *comparison) servable() *unstructured.Unstructured {
	u := c.cr.DeepCopy()
	groups, found, err := unstructured.NestedSlice(u.Object, "status", "inventory")
	if err == nil && found {
		if _, err = ownership.Decode(groups); err == nil {
			return u
		}
	}
	delete(u.Object, "status")
	return u
}

// isFaulty reports whether the resource or the package is wrong as a whole, and notes how.
func (c *comparison) isFaulty() bool {
	said := c.preview.Rollout
	for _, f := range slices.Concat(said.Invalid, said.Misconfigured) {
		c.problem("", f)
	}
	if len(c.out.Problems) == 0 && !c.preview.Fault.IsZero() {
		c.out.Problems = append(c.out.Problems, plan.Problem{Message: c.mask.Text(string(c.preview.Fault.Reason) + ": " + c.preview.Fault.Message)})
	}
	return len(c.out.Problems) > 0
}

// problem notes a fault, as the preview may show it.
func (c *comparison) problem(component string, f fault.Fault) {
	for _, text := range []*string{&f.Path, &f.Message, &f.Hint} {
		*text = c.preview.Redactor.Text(*text)
	}
	c.out.Problems = append(c.out.Problems, plan.ProblemOf(c.mask, component, f))
}

// component compares the objects of one component.
func (c *comparison) component(ctx context.Context, p rollout.ComponentPreview) error {
	c.mayRender(ctx, p.Source)
	switch {
	case c.isOfHook(p.Name):
		for _, o := range p.Objects { // another operator of this engine may have run it
			c.wanted[o.Ref().Identity()] = true
		}
		return nil
	case p.State == status.Excluded:
		return nil
	case p.State == status.Held:
		c.undecided(p.Name, p.Message)
		return nil
	case p.Source.Rendering == program.RenderedInvalid:
		return nil // faults says why
	case p.Source.Rendering == program.RenderedIncomplete:
		c.undecided(p.Name, cmp.Or(strings.Join(p.Source.Missing, "; "), p.Message))
		return nil
	case p.Reason == status.ReasonKindNotServed:
		c.undecided(p.Name, p.Message)
		return nil
	}
	waits := c.waitsFor(p)
	for _, o := range p.Objects {
		if err := c.object(ctx, p, o, waits); err != nil {
			return err
		}
	}
	return nil
}

// undecided notes what a component waits for.
func (c *comparison) undecided(component, message string) {
	message = c.mask.Text(c.preview.Redactor.Text(message))
	c.out.Undecided = append(c.out.Undecided, plan.Problem{Component: c.mask.Text(component), Message: message})
}

// notAboutContent are the reasons of components that have nothing to do with what is rendered: whose an object is,
// whether it is healthy, and which kinds there are.
var notAboutContent = []status.Reason{status.ReasonOwnedByAnother, status.ReasonObjectFailed, status.ReasonTimedOut, status.ReasonKindNotServed, status.ReasonKindUnreadable}

// faults notes what is wrong with the package, or with what it makes of this resource.
func (c *comparison) faults() {
	shown := c.preview
	shown.Components = slices.DeleteFunc(slices.Clone(shown.Components), func(p rollout.ComponentPreview) bool { return slices.Contains(notAboutContent, p.Reason) })
	for _, f := range render.Faults(shown) {
		c.problem("", f)
	}
	for _, p := range shown.Components {
		if p.State == status.Retrying {
			c.out.Problems = append(c.out.Problems, plan.Problem{Component: c.mask.Text(p.Name), Message: c.mask.Text(p.Message)})
		}
	}
}

// mayRender notes the objects of a component, whether or not they are decided.
func (c *comparison) mayRender(ctx context.Context, of program.Component) {
	if of.When.Verdict == program.False {
		return
	}
	for _, o := range of.Objects {
		if !o.Identity.Known() {
			continue
		}
		scope, err := c.from.Scope(ctx, o.Identity.GroupVersionKind)
		if err != nil {
			scope = cluster.Namespaced
		}
		c.wanted[ownership.RefOf(o, c.ref.Namespace, scope).Identity()] = true
	}
}

// object compares one object.
func (c *comparison) object(ctx context.Context, p rollout.ComponentPreview, o rollout.ObjectPreview, waits string) error {
	ref := o.Ref()
	c.wanted[ref.Identity()] = true
	live, err := c.source.original(ctx, ref)
	if err != nil && !cluster.IsKindNotServed(err) {
		return err
	}
	if live == nil && waits != "" {
		c.undecided(p.Name, waits)
		return nil
	}
	out := Object{
		Component: c.mask.Text(p.Name), APIVersion: c.mask.Text(o.Manifest.GetAPIVersion()),
		Kind: c.mask.Text(ref.Kind), Namespace: c.mask.Text(ref.Namespace), Name: c.mask.Text(ref.Name),
	}
	c.mask.Learn(live, o.Manifest)
	switch {
	case live == nil:
		out.Relation = Missing
	case live.GetDeletionTimestamp() != nil:
		out.Relation = Going
	case o.Policy.Apply == "createOnly":
		return nil // what exists is left alone
	default:
		out.Relation = Changed
		if owner := c.otherOwner(live); owner != "" {
			c.out.Owners = append(c.out.Owners, c.mask.Text(ref.String()+" belongs to "+owner))
		}
		if out.Fields, out.MoreFields, err = differences(c.mask, live, o.Manifest); err != nil {
			if len(c.out.Problems) == 0 { // else the preview says it in more words
				c.out.Problems = append(c.out.Problems, plan.Problem{Component: out.Component, Message: c.mask.Text(err.Error())})
			}
			return nil
		}
		if len(out.Fields) == 0 {
			return nil
		}
	}
	c.out.Objects = append(c.out.Objects, out)
	return nil
}

// otherOwner returns the controller of an object, if that is not the resource, or "": no object has two, and the
// engine would refuse it.
func (c *comparison) otherOwner(live *unstructured.Unstructured) string {
	for _, r := range live.GetOwnerReferences() {
		if r.Controller != nil && *r.Controller && r.UID != c.owner.UID {
			return r.Kind + " " + r.Name
		}
	}
	return ""
}

// waitsFor returns what a component waits for that lets its objects not exist yet, or "": a requirement that is
// not met, or the objects of a dependency that exist and are not healthy.
func (c *comparison) waitsFor(p rollout.ComponentPreview) string {
	for _, r := range p.Source.Requires {
		if r.Verdict != program.True {
			return "requires." + r.Name + ": " + r.Explain()
		}
	}
	for _, e := range p.Source.Edges {
		if e.Until != program.UntilVerified {
			continue
		}
		i := slices.IndexFunc(c.preview.Components, func(d rollout.ComponentPreview) bool { return d.Name == e.To })
		if i < 0 {
			continue
		}
		if why := c.unhealthy(c.preview.Components[i]); why != "" {
			return "waits for " + e.To + ": " + why
		}
	}
	return ""
}

// unhealthy returns why a component whose objects exist is not healthy, or "".
func (c *comparison) unhealthy(p rollout.ComponentPreview) string {
	for _, o := range p.Objects {
		live, known := c.source.seen(o.Ref())
		if !known || live == nil {
			return "" // that it is missing is said of the object
		}
		if j := verify.Object(live, o.Policy.Verify); j.Health != verify.Ready {
			return o.Ref().String() + ": " + j.Message
		}
	}
	if j := verify.Predicates(p.Source.Verify, p.Source.Failed); j.Health == verify.Progressing {
		return j.Message
	}
	return ""
}

// unrendered notes the objects that belong to the resource and that nothing renders.
func (c *comparison) unrendered() {
	for _, d := range c.dependents {
		if c.wanted[d.Identity()] || c.isOfHook(d.component) || isIgnored(c.ignore, d.Ref) {
			continue
		}
		c.out.Objects = append(c.out.Objects, Object{
			Relation: Unrendered, APIVersion: c.mask.Text(d.GroupVersion().String()),
			Kind: c.mask.Text(d.Kind), Namespace: c.mask.Text(d.Namespace), Name: c.mask.Text(d.Name),
		})
	}
}

// isOfHook reports whether the mark of an object names a hook of the package.
func (c *comparison) isOfHook(component string) bool {
	return component != "" && slices.ContainsFunc(c.preview.Rollout.Hooks, func(h program.Hook) bool {
		return h.Component.Name == component || h.MayBe(component)
	})
}

// noting is a package that tells a source what it renders before that is read.
type noting struct {
	reconcile.Package

	source *source
}

// Evaluate implements rollout.Evaluator.
func (n *noting) Evaluate(s program.Session) (program.Rollout, error) {
	out, err := n.Package.Evaluate(s)
	n.source.renders(out)
	return out, err
}
