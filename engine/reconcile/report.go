package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// report writes the status if it says something new, and the events. It returns
// when to come again for a change that was held back, or 0.
func (s *state) report(ctx context.Context, result rollout.Result) (time.Duration, error) {
	before := s.before
	after := s.build(result.Completion)
	s.recordObjectEvents(result.Events)
	weight := status.CompareSignificance(before, after)
	wait := s.writeLimits.status(s.key(), weight, s.Now())
	switch weight {
	case status.NoChange:
		return 0, nil
	case status.ProgressOnly:
		wait = max(wait, s.statusInterval.wait(s.key(), s.Now()))
	case status.StateOnly, status.Substance:
	}
	if wait > 0 {
		return wait, nil
	}
	if err := s.write(ctx, after); err != nil {
		return 0, err
	}
	s.writeLimits.reported(s.key(), weight, s.Now())
	s.recordTransition(before, after)
	if result.Detail != "" {
		s.log.Error(nil, "evaluation failed", "detail", result.Detail)
	}
	return 0, nil
}

// build returns the status for a completion.
func (s *state) build(c status.Completion) map[string]any { return status.Build(s.statusInput(c)) }

// statusInput returns what the status for a completion is built from.
func (s *state) statusInput(c status.Completion) status.Input {
	name, digest := s.identify()
	fault := ""
	if s.PackageFault != nil {
		fault = s.PackageFault()
	}
	return status.Input{
		Completion:   s.redacted(c),
		Before:       s.before,
		Generation:   s.cr.GetGeneration(),
		Now:          s.Now(),
		Package:      name,
		Digest:       digest,
		PackageFault: s.redactor.Text(fault),
		Version:      s.version(),
		Inventory:    s.inventory.Encode(),
		Hooks:        encodeHooks(s.finished),
		HandledAt:    s.cr.GetAnnotations()[AnnotationReconcileAt],
	}
}

// identify returns name and digest of the package; those of a stray's are what its
// status remembers.
func (s *state) identify() (name, digest string) {
	if s.program != nil {
		return s.program.Name(), s.program.Digest()
	}
	name, _, _ = unstructured.NestedString(s.before, "package", "name")
	digest, _, _ = unstructured.NestedString(s.before, "package", "digest")
	return name, digest
}

// version returns which version of the application the resource asks for: what its
// spec.version says, for packages that hold behaviour for several, or else the
// version of the API.
func (s *state) version() string {
	if desired, _, _ := unstructured.NestedString(s.before, "versions", "desired"); s.program == nil && desired != "" {
		return desired
	}
	if v, ok, _ := unstructured.NestedString(s.cr.Object, "spec", "version"); ok && v != "" {
		return v
	}
	return s.Kind.Version
}

// write stores a status.
func (s *state) write(ctx context.Context, after map[string]any) error {
	u := s.identity()
	u.Object["status"] = after
	if s.program == nil {
		// Another process may run the package after all. What it wrote is newer.
		u.SetResourceVersion(s.cr.GetResourceVersion())
	}
	if s.refusedStatuses.refused(s.key(), s.statusSizeCause(), s.Now()) {
		return &statusTooLargeError{errors.New("it was refused lately")}
	}
	if _, wrong := decodeHooks(after); wrong != nil && !reflect.DeepEqual(after[fieldHooks], s.before[fieldHooks]) {
		return s.writeReducedStatus(ctx, wrong) // nobody could read it again
	}
	err := s.Resources.ApplyStatus(ctx, u)
	if err != nil && s.tooLarge(after, err) {
		return s.writeReducedStatus(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("%s: writing the status: %w", s.owner, err)
	}
	s.before = after
	s.statusInterval.wrote(s.key(), s.Now())
	return nil
}

func (s *state) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.owner.Namespace, Name: s.owner.Name}
}

// identity returns the custom resource without content. Its UID keeps an apply
// from creating a resource that was deleted in the meantime.
func (s *state) identity() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(s.Kind)
	u.SetNamespace(s.owner.Namespace)
	u.SetName(s.owner.Name)
	u.SetUID(s.owner.UID)
	return u
}

// ownStatus returns what is the engine's of a resource's status. A status that was not
// written by the engine, as after a restore, is taken for its own as a whole.
func ownStatus(cr *unstructured.Unstructured) map[string]any {
	all, ok, _ := unstructured.NestedMap(cr.Object, "status")
	if !ok {
		return nil
	}
	for _, m := range cr.GetManagedFields() {
		if m.Manager != cluster.FieldManager || m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "status" || m.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status map[string]json.RawMessage `json:"f:status"`
		}
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		return status.EngineOwned(all, func(field string) bool {
			_, owned := fields.Status["f:"+field]
			return owned
		})
	}
	return all
}
