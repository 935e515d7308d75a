package render

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/dryrun"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/reconcile"
)

// A Session is a cluster in memory with the objects of an Input, in which the operator can act. It is for one
// goroutine.
type Session struct {
	view *view
	// refs are the objects that were rendered at some time, by component and name.
	refs map[[2]string]cluster.Ref
}

// NewSession returns a session and what a reconcile would do about the Input. It errors only if there is no preview.
func NewSession(ctx context.Context, p *program.Program, in Input) (*Session, Output, error) {
	s, d, err := open(ctx, p, in)
	if err != nil {
		return nil, Output{}, err
	}
	return s, s.view.output(d), nil
}

// open returns a session and the preview of a reconcile in it.
func open(ctx context.Context, p *program.Program, in Input) (*Session, reconcile.Preview, error) {
	v := &view{world: dryrun.New(configured(in), p), in: in, placed: map[cluster.Ref]bool{}, evaluates: &recorder{Program: p}}
	v.world.EvaluateWith(p.GroupVersionKind().GroupKind(), v.evaluates)
	if err := v.configure(p, in.Config); err != nil {
		return nil, reconcile.Preview{}, err
	}
	if err := v.fill(p); err != nil {
		return nil, reconcile.Preview{}, err
	}
	s := &Session{v, map[[2]string]cluster.Ref{}}
	for {
		d, err := v.world.Preview(ctx, v.resource)
		if err != nil {
			return nil, reconcile.Preview{}, err
		}
		again, err := v.place(d)
		if err != nil {
			return nil, reconcile.Preview{}, d.Redactor.Error(err)
		}
		if !again {
			s.learn(d)
			return s, d, nil
		}
	}
}

// World returns the cluster.
func (s *Session) World() *dryrun.World { return s.view.world }

// Resource returns which object the custom resource is.
func (s *Session) Resource() cluster.Ref { return s.view.resource }

// Preview returns what the operator would do now. If the custom resource does not exist any more, it is the zero Output.
func (s *Session) Preview(ctx context.Context) (Output, error) {
	cr := s.view.world.Get(s.view.resource)
	if cr == nil {
		return Output{}, nil
	}
	d, err := s.view.world.Preview(ctx, s.view.resource)
	if err != nil {
		return Output{}, err
	}
	s.view.cr = cr
	s.learn(d)
	return s.view.output(d), nil
}

// Ref returns which object of the cluster an object of a component is, or was when it was rendered last. It reports
// false if it never was.
func (s *Session) Ref(component, object string) (cluster.Ref, bool) {
	ref, ok := s.refs[[2]string{component, object}]
	return ref, ok
}

// Refs returns the objects that were rendered at some time, by component and name. It must not be changed.
func (s *Session) Refs() map[[2]string]cluster.Ref { return s.refs }

// Configure replaces the configuration of the operator. It errors if the session was opened without one.
func (s *Session) Configure(p *program.Program, config map[string]any) error {
	return s.view.configure(p, config)
}

// Put writes an object that is not the resource's, in the namespace of the resource unless it names another one. It
// errors if its kind is not known.
func (s *Session) Put(manifest map[string]any) (cluster.Ref, error) {
	u := (&unstructured.Unstructured{Object: manifest}).DeepCopy()
	if err := s.view.world.SetNamespace(u, s.view.resource.Namespace); err != nil {
		return cluster.Ref{}, err
	}
	setUID(u)
	_, err := s.view.world.Put(u)
	return cluster.RefOf(u), err
}

// learn notes which objects a preview has.
func (s *Session) learn(d reconcile.Preview) {
	for _, c := range d.Rollout.Components {
		for _, o := range c.Objects {
			if scope, err := s.view.world.Scope(o.Identity.GroupVersionKind); err == nil && o.Identity.Known() {
				s.refs[[2]string{c.Name, o.Name}] = ownership.RefOf(o, s.view.resource.Namespace, scope)
			}
		}
	}
}
