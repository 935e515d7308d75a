package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/rollout"
	"operetta.dev/engine/status"
)

// report writes the events, and the status if it differs. It returns when to reconcile again for a change
// that was held back, or 0.
func (s *state) report(ctx context.Context, result rollout.Result) (time.Duration, error) {
	before := s.before
	after := s.build(result.Completion)
	s.observe(after)
	s.recordObjectEvents(result.Events)
	significance := status.CompareSignificance(before, after)
	s.statusUnchanged = significance == status.NoChange
	if result.MoreEntries && significance == status.ProgressOnly {
		significance = status.Substance
	}
	wait := s.memory.writes.statusWait(significance, s.Now())
	if significance == status.ProgressOnly {
		wait = max(wait, s.memory.untilProgress(s.Now()))
	}
	if significance == status.NoChange || wait > 0 {
		return wait, nil
	}
	if err := s.write(ctx, after); err != nil {
		return 0, err
	}
	s.memory.writes.statusWritten(significance, s.Now())
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
	return status.Input{
		Completion:    redacted(s.redactor, c),
		Before:        s.before,
		Generation:    s.cr.GetGeneration(),
		Now:           s.Now(),
		Package:       name,
		Digest:        digest,
		PackageFault:  s.redactor.Text(s.packageFault()),
		PatchesUnread: s.patchesUnread(s.cr.GetNamespace()),
		Version:       s.version(),
		Inventory:     s.inventory.Encode(),
		Hooks:         encodeHooks(s.hookStates),
		HandledAt:     s.cr.GetAnnotations()[AnnotationReconcileAt],
	}
}

// packageFault returns what is wrong with the present files of the package, or "".
func (r *Reconciler) packageFault() string {
	if r.PackageFault == nil {
		return ""
	}
	return r.PackageFault()
}

// patchesUnread returns why the operator may not read the Patches of a namespace, or "". A resource of the cluster has none.
func (r *Reconciler) patchesUnread(namespace string) string {
	if r.PatchesUnread == nil || namespace == "" {
		return ""
	}
	return r.PatchesUnread(namespace)
}

// identify returns name and digest of the package. The status has them if the package does not run
// here.
func (s *subject) identify() (name, digest string) {
	if s.program != nil {
		return s.program.Name(), s.program.Digest()
	}
	name, _, _ = unstructured.NestedString(s.before, "package", "name")
	digest, _, _ = unstructured.NestedString(s.before, "package", "digest")
	return name, digest
}

// version returns the version of the application that the resource requests: spec.version, for
// packages that support several, or else the API version.
func (s *subject) version() string {
	if desired, _, _ := unstructured.NestedString(s.before, "versions", "desired"); s.program == nil && desired != "" {
		return desired
	}
	if v, ok, _ := unstructured.NestedString(s.cr.Object, "spec", "version"); ok && v != "" {
		return v
	}
	return s.owner.Version
}

// write applies a status. It errors with a statusTooLargeError if the status does not fit.
func (s *state) write(ctx context.Context, after map[string]any) error {
	u := s.identity()
	u.Object["status"] = after
	if s.program == nil {
		// Another process may run the package after all. If it wrote meanwhile, this write must
		// conflict.
		u.SetResourceVersion(s.cr.GetResourceVersion())
	}
	if refused := s.memory.refusedStatus; refused.request == s.request() && s.Now().Before(refused.until) {
		return &statusTooLargeError{errors.New("it was refused lately")}
	}
	if _, wrong := decodeHooks(after); wrong != nil && !reflect.DeepEqual(after[fieldHooks], s.before[fieldHooks]) {
		return s.writeReducedStatus(ctx, wrong) // no reconcile could read it again
	}
	err := s.Resources.ApplyStatus(ctx, u)
	if err != nil && s.tooLarge(after, err) {
		return s.writeReducedStatus(ctx, err)
	}
	if err != nil {
		s.reportRefused(ownStatusWrite, err)
		return fmt.Errorf("%s: writing the status: %w", s.owner, err)
	}
	delete(s.memory.refusals, ownStatusWrite)
	s.before = after
	s.memory.statusWritten = s.Now()
	return nil
}

func (s *subject) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.owner.Namespace, Name: s.owner.Name}
}

// identity returns the custom resource without content. The UID prevents an apply from creating a
// resource that was deleted in the meantime.
func (s *subject) identity() *unstructured.Unstructured { return s.owner.Object(s.owner.UID) }

// ownStatus returns the part of a status that the engine owns. It returns the whole status if the
// engine has not written it, as after a restore. What is in its fields is that of a cache, so it must not be changed.
func ownStatus(cr *unstructured.Unstructured) map[string]any {
	all, ok := cr.Object["status"].(map[string]any)
	if !ok || all == nil {
		return nil
	}
	for _, m := range ownership.ManagedFields(cr) {
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
	return maps.Clone(all)
}

// writeChanged writes a status if it differs.
func (s *state) writeChanged(ctx context.Context, after map[string]any) error {
	s.observe(after)
	before := s.before
	if status.Equal(before, after) {
		return nil
	}
	if err := s.write(ctx, after); err != nil {
		return err
	}
	s.recordTransition(before, after)
	return nil
}
