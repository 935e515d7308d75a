package plan

import (
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/crd/conform"
)

// An admission does to custom resources what an API server does that has their definition. One of none changes and
// refuses nothing. It is safe for concurrent use.
type admission struct {
	crd *apiextensionsv1.CustomResourceDefinition

	mu sync.Mutex
	// servers are those of the versions that were asked for: one takes longer to make than a resource to plan.
	servers map[string]*conform.Server
}

// server returns the server of a version, or nil without a definition.
func (a *admission) server(version string) (*conform.Server, error) {
	if a == nil || a.crd == nil {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.servers[version]; s != nil {
		return s, nil
	}
	s, err := conform.NewServer(a.crd, version)
	if err != nil {
		return nil, err
	}
	if a.servers == nil {
		a.servers = map[string]*conform.Server{}
	}
	a.servers[version] = s
	return s, nil
}

// read returns a stored resource as the API server returns it: with defaults, and without the fields that the
// definition does not have. Nothing is refused that is stored already; the package says what is wrong with it.
func (a *admission) read(u *unstructured.Unstructured) *unstructured.Unstructured {
	server, err := a.server(u.GroupVersionKind().Version)
	if err != nil || server == nil {
		return u.DeepCopy() // the definition has no such version, which the package does not have either
	}
	out, _ := server.Admit(u.Object, u.Object)
	return &unstructured.Unstructured{Object: out}
}

// write returns a resource as the API server would store it. It errors if it would refuse it.
func (a *admission) write(u, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	server, err := a.server(u.GroupVersionKind().Version)
	if err != nil || server == nil {
		return u, err
	}
	var old map[string]any
	if before != nil {
		old = before.Object
	}
	out, err := server.Admit(u.Object, old)
	return &unstructured.Unstructured{Object: out}, err
}
