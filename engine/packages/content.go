package packages

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/source"
)

// content is the content of a source.
type content struct {
	// version identifies the object that it was read from, and its state.
	version  string
	snapshot *source.Snapshot
	problem  *problem
}

// digest returns the digest of the content, or "".
func (c content) digest() string {
	if c.snapshot == nil {
		return ""
	}
	return c.snapshot.Digest()
}

// read reads the content of the source of a Package. It is read once for each version of the object.
func (r *Reconciler) read(ctx context.Context, p Package, s *state) *problem {
	version, files, wrong := r.files(ctx, p)
	if wrong != nil {
		s.content = content{problem: wrong}
		return wrong
	}
	if s.content.version == version {
		return s.content.problem.fresh()
	}
	s.content = content{version: version}
	snapshot, err := source.Files(p.Name, p.origin(), files)
	if err != nil {
		s.content.problem = unusable(err)
		return s.content.problem.fresh()
	}
	s.content.snapshot = snapshot
	return nil
}

// files returns the files of a source, and what identifies the state of the object that has them.
func (r *Reconciler) files(ctx context.Context, p Package) (string, map[string]string, *problem) {
	ref := p.Source.ConfigMap
	if ref == nil {
		r.ConfigMaps.Forget(p.Name)
		return "inline " + strconv.FormatInt(p.object.GetGeneration(), 10), p.Source.Inline, nil
	}
	u, err := r.ConfigMaps.Get(ctx, p.Name, *ref)
	if _, unreadable := errors.AsType[*cluster.KindUnreadableError](err); unreadable {
		return "", nil, &problem{stage: reading, reason: ReasonSourceUnreadable, message: err.Error(), again: sourceAgain}
	}
	if err != nil {
		return "", nil, &problem{stage: reading, reason: ReasonSourceUnreadable, message: err.Error(), err: err}
	}
	if u == nil {
		return "", nil, &problem{stage: reading, reason: ReasonSourceNotFound, message: fmt.Sprintf("there is no ConfigMap %s/%s", ref.Namespace, ref.Name)}
	}
	files, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return "", nil, &problem{stage: reading, reason: ReasonSourceUnreadable, message: err.Error()}
	}
	return "configMap " + string(u.GetUID()) + " " + u.GetResourceVersion(), files, nil
}

// unusable returns why files are no package.
func unusable(err error) *problem {
	message := err.Error()
	if errors.Is(err, source.ErrNoFiles) {
		message = "the source has no CUE files"
	}
	return &problem{stage: loading, reason: ReasonBroken, message: message, faults: fault.Faults{{Message: message}}}
}
