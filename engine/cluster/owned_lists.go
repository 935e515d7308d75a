package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OwnedLists lets the Lives of a process share what they list of owned objects. Each resource that has lost its
// inventory looks for objects of every kind, and any user who can create resources could make any number of them:
//
//   - The first list of a place is of the objects of the owner that is asked for.
//   - While that is recent, the next one is of the objects of all owners, and serves all callers that ask after that.
//
// An owner's objects are listed again if this process has written one of them since the list began.
type OwnedLists struct {
	label string

	mu sync.Mutex
	in map[ownedPlace]*ownedList
	// wrote is when an object of an owner was last written, and swept when old entries were last removed.
	wrote map[string]time.Time
	swept time.Time
}

// An ownedPlace is where objects are listed, and as whom: what one user may list must not serve another one.
type ownedPlace struct{ user, namespace string }

// An ownedList is the last list of a place.
type ownedList struct {
	// turn is held by who uses the rest.
	turn chan struct{}
	// began is when it began, and ended when it failed if err says so.
	began, ended time.Time
	err          error
	// byOwner are the objects of all owners; nil if it was of one owner.
	byOwner map[string][]*unstructured.Unstructured
}

// NewOwnedLists returns the OwnedLists of objects whose label has the owner.
func NewOwnedLists(label string) *OwnedLists {
	return &OwnedLists{label: label, in: map[ownedPlace]*ownedList{}, wrote: map[string]time.Time{}}
}

// noteWrite notes that an object was written, or may have been. It may be called on nil.
func (o *OwnedLists) noteWrite(object *unstructured.Unstructured) {
	if o == nil {
		return
	}
	owner, ok := object.GetLabels()[o.label]
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if now.Sub(o.swept) >= ownedFresh {
		o.swept = now
		maps.DeleteFunc(o.wrote, func(_ string, at time.Time) bool { return now.Sub(at) >= ownedFresh })
	}
	o.wrote[owner] = now
}

// at returns the list of a place.
func (o *OwnedLists) at(place ownedPlace) *ownedList {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.in[place] == nil {
		o.in[place] = &ownedList{turn: make(chan struct{}, 1)}
	}
	return o.in[place]
}

// serves reports whether a list of all owners has what an owner has now.
func (o *OwnedLists) serves(in *ownedList, owner string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return in.byOwner != nil && time.Since(in.began) < ownedFresh && in.began.After(o.wrote[owner])
}

// owned returns the objects of an owner. It calls list, which lists what has a label, unless an earlier list
// serves. An error serves those who have waited for it.
func (o *OwnedLists) owned(ctx context.Context, place ownedPlace, owner string, list func(client.ListOption) ([]*unstructured.Unstructured, error)) ([]*unstructured.Unstructured, error) {
	asked, in := time.Now(), o.at(place)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case in.turn <- struct{}{}:
	}
	defer func() { <-in.turn }()
	if o.serves(in, owner) {
		return slices.Clone(in.byOwner[owner]), nil
	}
	if in.err != nil && in.ended.After(asked) {
		return nil, in.err
	}
	others := !in.began.IsZero() && time.Since(in.began) < ownedFresh
	began := time.Now()
	in.began, in.ended, in.err, in.byOwner = began, time.Time{}, nil, nil // others read the turn meanwhile
	time.AfterFunc(ownedFresh, func() { o.drop(place, in, began) })
	if !others {
		out, err := list(client.MatchingLabels{o.label: owner})
		in.fail(ctx, err)
		return out, err
	}
	all, err := list(client.HasLabels{o.label})
	if err != nil {
		in.fail(ctx, err)
		return nil, err
	}
	in.byOwner = map[string][]*unstructured.Unstructured{}
	for _, u := range all {
		is := u.GetLabels()[o.label]
		in.byOwner[is] = append(in.byOwner[is], u)
	}
	return slices.Clone(in.byOwner[owner]), nil
}

// fail notes the error of a list, unless it is about who has asked.
func (l *ownedList) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		l.err, l.ended = err, time.Now()
	}
}

// drop forgets a list that serves no caller any more, unless there is a later one.
func (o *OwnedLists) drop(place ownedPlace, in *ownedList, began time.Time) {
	in.turn <- struct{}{}
	defer func() { <-in.turn }()
	if !in.began.Equal(began) {
		return
	}
	in.byOwner = nil
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.in[place] == in {
		delete(o.in, place)
	}
}
