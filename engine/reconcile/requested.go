package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/redact"
)

// Requested returns the session of a custom resource as a request would like to have it: with its
// configuration, and without live objects and inputs. It remembers nothing of the resource, which may never
// exist. It errors with a ConfigError, or when the cluster does not answer.
func (r *Reconciler) Requested(ctx context.Context, cr *unstructured.Unstructured, p Package) (program.Session, error) {
	key := types.NamespacedName{Namespace: cr.GetNamespace(), Name: cr.GetName()}
	s := &state{Reconciler: r, redactor: redact.New(), subject: subject{program: p, cr: cr, owner: ownership.Owner{Ref: r.ref(key), UID: cr.GetUID()}}}
	config, err := s.config(ctx)
	return program.Session{CR: cr.Object, Config: config.layers}, err
}
