package packages

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/registry"
	"operetta.dev/engine/source"
)

// content is the content of a source.
type content struct {
	// version identifies the object that it was read from, and its state.
	version string
	// plain is what the source has, snapshot is that with the Overlays of the cluster.
	plain, snapshot *source.Snapshot
	problem         *problem
	// unified identifies what snapshot was made from, and conflict is why it is none.
	unified  string
	conflict *problem
	// artifact is what was fetched, or nil.
	artifact *registry.Artifact
	// provenance is with which signatures the content is accepted, or "" if that is not noted.
	provenance string
	// askAgain is when it is fetched again, and tries is how often that has failed.
	askAgain time.Time
	tries    int
}

// digest returns the digest of the content, or "".
func (c content) digest() string {
	if c.snapshot == nil {
		return ""
	}
	return c.snapshot.Digest()
}

// sources read the contents of Packages, as their specs say where those are.
type sources struct {
	trust
	configMaps ConfigMaps
	overlays   Overlays
	secrets    Secrets
	enqueue    func(name string)
	now        func() time.Time
	slots      *slots
}

// read reads the content of a Package.
func (src sources) read(ctx context.Context, p Package, s *state) *problem {
	if wrong := src.readSource(ctx, p, s); wrong != nil {
		return wrong
	}
	return src.unify(ctx, p, s)
}

// readSource reads the content of the source of a Package. It is read once for each version of the object. What takes
// a registry is fetched beside the reconciles; see fetch.
func (src sources) readSource(ctx context.Context, p Package, s *state) *problem {
	if p.Source.OCI != nil {
		src.configMaps.Forget(p.Name)
		return src.readFetched(ctx, p, s, "oci "+fmt.Sprintf("%+v", *p.Source.OCI), func(ctx context.Context, known *registry.Artifact) (fetched, error) {
			return src.fetchModule(ctx, p, known)
		})
	}
	from, err := src.objectProvenance()
	if err != nil {
		s.endFetch()
		s.content = content{problem: notFetched(err)}
		return s.content.problem.fresh()
	}
	version, files, wrong := src.files(ctx, p)
	if wrong != nil {
		s.endFetch()
		s.content = content{problem: wrong}
		return wrong
	}
	if s.content.version == version && s.content.askAgain.IsZero() {
		return s.content.problem.fresh()
	}
	load := func(modules source.Modules) (*source.Snapshot, error) {
		return source.Loader{Modules: modules}.Files(p.Name, p.origin(), ".", files)
	}
	snapshot, err := load(later{})
	if errors.Is(err, errLater) {
		return src.readFetched(ctx, p, s, version, func(ctx context.Context, _ *registry.Artifact) (fetched, error) {
			modules := src.registries.Modules(nil)
			snapshot, err := load(within{ctx, modules})
			return fetched{nil, snapshot, src.fetchedProvenance(nil, nil, modules)}, err
		})
	}
	s.endFetch()
	s.content = content{version: version, provenance: from}
	if err != nil {
		s.content.problem = unusable(err)
		return s.content.problem.fresh()
	}
	s.content.plain = snapshot
	return nil
}

// files returns the files of a source, and what identifies the state of the object that has them.
func (src sources) files(ctx context.Context, p Package) (string, map[string]string, *problem) {
	ref := p.Source.ConfigMap
	if ref == nil {
		src.configMaps.Forget(p.Name)
		return "inline " + strconv.FormatInt(p.object.GetGeneration(), 10), p.Source.Inline, nil
	}
	u, err := src.configMaps.Get(ctx, p.Name, *ref)
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
	if _, overlay := errors.AsType[*source.OverlayError](err); !overlay && errors.Is(err, source.ErrNoFiles) {
		message = "the source has no CUE files"
	}
	at := faultOf(err)
	if at.Position.File == "" {
		at.Message = message
	} else {
		message = at.Position.String() + ": " + at.Message
	}
	return &problem{stage: loading, reason: ReasonBroken, message: message, faults: fault.Faults{at}}
}
