package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"operetta.dev/engine/crd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subsystems knows the kinds of packages: the packages of this process, and those that the label of a
// CustomResourceDefinition names. It is safe for concurrent use.
type subsystems struct {
	// served reports whether a kind belongs to a package of this process.
	served func(schema.GroupKind) bool
	// direct reads from the API server.
	direct client.Client
	log    logr.Logger
	now    func() time.Time

	mu    sync.Mutex
	known map[schema.GroupKind]subsystem
}

// A subsystem says whether a kind belongs to a package, and when that was looked up.
type subsystem struct {
	is    bool
	asked time.Time
}

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

func newSubsystems(direct client.Client, log logr.Logger, served func(schema.GroupKind) bool) *subsystems {
	return &subsystems{served: served, direct: direct, log: log, now: time.Now, known: map[schema.GroupKind]subsystem{}}
}

// has reports whether a kind belongs to a package. It errors if the API server does not answer.
func (s *subsystems) has(ctx context.Context, kind schema.GroupKind) (bool, error) {
	if s.served(kind) {
		return true, nil
	}
	if clientgoscheme.Scheme.IsGroupRegistered(kind.Group) { // Kubernetes' own
		return false, nil
	}
	s.mu.Lock()
	last, ok := s.known[kind]
	s.mu.Unlock()
	if ok && (last.is || s.now().Sub(last.asked) < subsystemRecheck) {
		return last.is, nil
	}
	is, err := s.ask(ctx, kind)
	if err != nil {
		return false, fmt.Errorf("reading the CustomResourceDefinition of %s: %w", kind, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[kind] = subsystem{is: is, asked: s.now()}
	return is, nil
}

// ask reads the label of the definition of a kind.
func (s *subsystems) ask(ctx context.Context, kind schema.GroupKind) (bool, error) {
	mapping, err := s.direct.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return false, nil // its definition is gone, and its resources are gone with it
	}
	if err != nil {
		return false, err
	}
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(definitionKind)
	err = s.direct.Get(ctx, client.ObjectKey{Name: mapping.Resource.GroupResource().String()}, definition)
	switch {
	case apierrors.IsNotFound(err): // an aggregated API serves it
		return false, nil
	case apierrors.IsForbidden(err):
		s.log.Info("the operator may not read CustomResourceDefinitions, so it does not know whether a kind belongs to a package: the resources of that kind need not report Ready", "kind", kind.String())
		return false, nil
	case err != nil:
		return false, err
	}
	_, labelled := definition.GetLabels()[crd.PackageLabel]
	return labelled, nil
}
