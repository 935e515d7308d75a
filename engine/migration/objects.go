package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The bounds of a migration.
const (
	// pageSize is how many objects are listed, and so converted, by one request.
	pageSize = 100
	// parallel is how many objects are written at once.
	parallel = 4
	// writeTries is how often the write of one object is tried that others write at the same time.
	writeTries = 5
	// maxFailures is how many objects may fail until the rest is not tried.
	maxFailures = 20
	// fieldManager is who writes. It comes to own no field.
	fieldManager = "operetta-migrate"
	// maxBeginnings is how often a list begins anew that takes so long that the API server has forgotten it.
	maxBeginnings = 3
)

// A Failure is an object that was not stored anew.
type Failure struct {
	// Object is the namespace, if it has one, and the name.
	Object string
	Err    error
}

// An Outcome is what a migration has done.
type Outcome struct {
	// Objects is how many there are in the storage version now, and Gone how many were deleted meanwhile.
	Objects, Gone int
	// Failures are those that are not, by namespace and name. If there are any, no version is removed from the definition.
	Failures []Failure
	// Stopped says that there were so many failures that the rest was not tried.
	Stopped bool
}

// Count returns how many objects there are.
func (m *Migration) Count(ctx context.Context) (int, error) {
	count := 0
	err := m.pages(ctx, func(page []metav1.PartialObjectMetadata, _ int) error {
		count += len(page)
		return nil
	})
	return count, err
}

// errTooMany ends the pages.
var errTooMany = errors.New("too many failures")

// Run stores all objects anew, and then removes the old versions from the definition. It errors if objects cannot be listed or
// the definition has changed, after any part of the work. An object that fails is in the outcome.
func (m *Migration) Run(ctx context.Context) (Outcome, error) {
	var out Outcome
	if err := m.mayFinish(ctx); err != nil {
		return out, err
	}
	err := m.pages(ctx, func(page []metav1.PartialObjectMetadata, remaining int) error {
		if err := m.writePage(ctx, page, &out); err != nil {
			return err
		}
		if done := out.Objects + out.Gone + len(out.Failures); m.Progress != nil {
			m.Progress(done, done+remaining)
		}
		if len(out.Failures) >= maxFailures {
			return errTooMany
		}
		return nil
	})
	slices.SortFunc(out.Failures, func(a, b Failure) int { return strings.Compare(a.Object, b.Object) })
	switch {
	case errors.Is(err, errTooMany):
		out.Stopped = true
		return out, nil
	case err != nil || len(out.Failures) > 0:
		return out, err
	}
	return out, m.finish(ctx)
}

// writePage stores the objects of a page anew.
func (m *Migration) writePage(ctx context.Context, page []metav1.PartialObjectMetadata, into *Outcome) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range page {
		group.Go(func() error {
			err := m.write(ctx, &page[i])
			if ctx.Err() != nil {
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				into.Objects++
			case apierrors.IsNotFound(err):
				into.Gone++
			default:
				into.Failures = append(into.Failures, Failure{nameOf(&page[i]), err})
			}
			return nil
		})
	}
	return group.Wait()
}

// nameOf returns the namespace and the name of an object.
func nameOf(o *metav1.PartialObjectMetadata) string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// write stores an object anew. It is the object of that UID or nothing: one that was created meanwhile is stored in the
// storage version. The patch has no resourceVersion, so that the API server applies it to whatever is stored: what somebody
// writes at the same time is not lost, and not written twice.
func (m *Migration) write(ctx context.Context, o *metav1.PartialObjectMetadata) error {
	nothing, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.UID}})
	if err != nil {
		return err
	}
	for range writeTries {
		_, err = m.clients.Objects.Resource(m.resource).Namespace(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, nothing, metav1.PatchOptions{FieldManager: fieldManager})
		if !apierrors.IsConflict(err) {
			return err
		}
		now, getErr := m.clients.Objects.Resource(m.resource).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		if now.UID != o.UID {
			return nil
		}
	}
	return err
}

// pages calls a function with the metadata of all objects in pages, and how many come behind it. Objects that are created
// meanwhile may be left out: they are stored in the storage version. It may see an object twice.
func (m *Migration) pages(ctx context.Context, each func(page []metav1.PartialObjectMetadata, remaining int) error) error {
	from := metav1.ListOptions{Limit: pageSize}
	after, single := "", 0
	for beginnings := 1; ; {
		list, err := m.clients.Objects.Resource(m.resource).List(ctx, from)
		switch {
		case apierrors.IsResourceExpired(err) && beginnings < maxBeginnings:
			beginnings++
			from.Continue = continued(err) // of the objects as they are now
			continue
		case err != nil && ctx.Err() == nil && from.Limit > 1:
			from.Limit, single = 1, 0 // which one is it?
			continue
		case err != nil && after != "":
			return fmt.Errorf("listing %s in version %s behind %s: %w", m.definition.Name, m.resource.Version, after, err)
		case err != nil:
			return fmt.Errorf("listing %s in version %s: %w", m.definition.Name, m.resource.Version, err)
		}
		remaining := 0
		if list.RemainingItemCount != nil {
			remaining = int(*list.RemainingItemCount)
		}
		if err := each(list.Items, remaining); err != nil {
			return err
		}
		if list.Continue == "" {
			return nil
		}
		if len(list.Items) > 0 {
			after = nameOf(&list.Items[len(list.Items)-1])
		}
		from.Continue = list.Continue
		if single++; single == pageSize {
			from.Limit = pageSize // it was none of them: the API server was away for a moment
		}
	}
}

// continued returns where a list goes on whose place the API server has forgotten, or "" for its beginning.
func continued(err error) string {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status.ErrStatus.Continue
	}
	return ""
}
