package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"time"

	"operetta.dev/engine/registry"
	"operetta.dev/engine/source"
)

// A fetch gets a content from registries, which may hang.
type fetch struct {
	background
	fetched

	version string
	err     error
}

// fetched is what was fetched. A content that is known already has no snapshot.
type fetched struct {
	artifact   *registry.Artifact
	snapshot   *source.Snapshot
	provenance string
}

// endFetch ends and forgets what is being fetched.
func (s *state) endFetch() {
	if s.fetch != nil {
		s.fetch.cancel()
		s.fetch = nil
	}
}

// maxFetches is how many contents are fetched at a time: a registry that hangs must not keep all of them, and
// each may take some megabytes.
const maxFetches = 4

// maxPlans is how many plans are made at a time: their evaluations must leave workers for those of resources.
const maxPlans = 1

// A fetcher gets a content. known is what was fetched last; if it is still that, there is no snapshot.
type fetcher func(ctx context.Context, known *registry.Artifact) (fetched, error)

// readFetched is read for what takes a registry. A reconcile never waits for it: until the first fetch has ended,
// the Package has the reason Fetching, and what was accepted last is served.
func (src sources) readFetched(ctx context.Context, p Package, s *state, version string, get fetcher) *problem {
	if s.content.version != version {
		s.content = content{version: version, problem: fetching(), askAgain: src.now()}
	}
	if s.fetch != nil && s.fetch.version != version {
		s.endFetch()
	}
	if s.fetch != nil && s.fetch.ended() {
		src.endOfFetch(p, s)
	}
	if s.fetch == nil && !s.content.askAgain.IsZero() && !src.now().Before(s.content.askAgain) {
		src.beginFetch(ctx, p, s, version, get)
	}
	return s.content.problem.fresh()
}

func fetching() *problem {
	return &problem{stage: reading, reason: ReasonFetching, message: "the content is being fetched", passes: true}
}

// beginFetch begins a fetch, whose end is an event.
func (src sources) beginFetch(ctx context.Context, p Package, s *state, version string, get fetcher) {
	f := &fetch{version: version}
	ctx, f.background = newBackground(ctx)
	s.fetch = f
	known := s.content.artifact
	go func() {
		defer f.cancel()
		f.err = src.slots.run(ctx, maxFetches, fetchLimit, func(ctx context.Context) (err error) {
			f.fetched, err = protected(ctx, get, known)
			return err
		})
		close(f.done)
		src.enqueue(p.Name)
	}()
}

// protected calls a fetcher. A panic of the parser, over what a registry has sent, is an error.
func protected(ctx context.Context, get fetcher, known *registry.Artifact) (out fetched, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("reading the content: %v", cause)
		}
	}()
	return get(ctx, known)
}

// endOfFetch takes over the result of a fetch.
func (src sources) endOfFetch(p Package, s *state) {
	f := s.fetch
	s.fetch = nil
	if f.err != nil {
		s.content.problem, s.content.askAgain = notFetched(f.err), src.now().Add(jitter(doubled(fetchAgain, maxFetchDelay, s.content.tries)))
		s.content.tries++
		return
	}
	s.content.problem, s.content.tries, s.content.askAgain = nil, 0, time.Time{}
	if f.artifact != nil && !ociSource(p).Pinned() {
		s.content.askAgain = src.now().Add(jitter(tagAgain))
	}
	if f.snapshot != nil {
		s.content.artifact, s.content.plain, s.content.provenance = described(f.artifact), f.snapshot, f.provenance
	}
}

// described returns what is told of a module that was fetched, without its files: the snapshot has those that it needs.
func described(a *registry.Artifact) *registry.Artifact {
	if a == nil {
		return nil
	}
	return &registry.Artifact{Digest: a.Digest, Module: a.Module, Verified: a.Verified}
}

// jitter returns a delay that is up to a tenth shorter or longer.
func jitter(d time.Duration) time.Duration {
	const part = 10
	return d - d/part + rand.N(2*d/part) //nolint:gosec // nobody gains by guessing it
}

// ociSource returns what a Package fetches.
func ociSource(p Package) registry.Source {
	if p.Source.OCI == nil {
		return registry.Source{}
	}
	return registry.Source{Reference: p.Source.OCI.Reference, Digest: p.Source.OCI.Digest}
}

// fetchModule fetches the module of a Package, and what that depends on.
func (src sources) fetchModule(ctx context.Context, p Package, known *registry.Artifact) (fetched, error) {
	from := ociSource(p)
	from.Keys = p.keys
	if known != nil {
		from.Known = known.Digest
	}
	if name := p.Source.OCI.PullSecret; name != "" {
		var err error
		if from.Credentials, err = src.secrets.PullSecret(ctx, name); err != nil {
			return fetched{}, &PullSecretError{name, err}
		}
	}
	artifact, err := src.registries.Fetch(ctx, from)
	if err != nil || artifact.Files == nil {
		return fetched{artifact: artifact}, err
	}
	modules := src.registries.Modules(p.keys)
	snapshot, err := packageIn(ctx, p, artifact, modules)
	return fetched{artifact, snapshot, src.fetchedProvenance(p.keys, artifact, modules)}, err
}

// A PullSecretError says why a Secret with credentials cannot be used.
type PullSecretError struct {
	Name string
	Err  error
}

// Error names the Secret.
func (e *PullSecretError) Error() string { return fmt.Sprintf("pullSecret %s: %v", e.Name, e.Err) }

// Unwrap returns why.
func (e *PullSecretError) Unwrap() error { return e.Err }

// notFetched returns why a content could not be fetched.
func notFetched(err error) *problem {
	out := unusable(err)
	if _, secret := errors.AsType[*PullSecretError](err); secret {
		return &problem{stage: reading, reason: ReasonSourceUnreadable, message: err.Error()}
	}
	of, ok := errors.AsType[*registry.Error](err)
	if !ok {
		return out
	}
	out.stage, out.reason, out.passes = reading, reasonOf(of.Code), of.Transient()
	if slices.Contains([]registry.Code{registry.Unsigned, registry.BadSignature, registry.NotAllowed}, of.Code) {
		out.stage = loading // it was read, and is not accepted
	}
	if _, dependency := errors.AsType[*source.DependencyError](err); !dependency {
		out.message, out.faults = of.Error(), nil
	}
	return out
}

// reasonOf returns the reason for a failure of a registry.
func reasonOf(code registry.Code) Reason {
	switch code {
	case registry.Unreachable, registry.TimedOut, registry.Failed:
		return ReasonRegistryUnavailable
	case registry.Unauthorized:
		return ReasonRegistryUnauthorized
	case registry.NotFound:
		return ReasonSourceNotFound
	case registry.DigestMismatch:
		return ReasonDigestMismatch
	case registry.NotModule:
		return ReasonNotModule
	case registry.TooLarge:
		return ReasonSourceTooLarge
	case registry.Invalid:
		return ReasonInvalidReference
	case registry.Unsigned:
		return ReasonUnsigned
	case registry.BadSignature:
		return ReasonSignatureInvalid
	case registry.NotAllowed:
		return ReasonSourceNotAllowed
	}
	panic(fmt.Sprintf("engine/packages: unknown code %d", code))
}

// within has modules until a context ends: there may be many of them, and each has its own time.
type within struct {
	ctx     context.Context //nolint:containedctx // a Loader knows no contexts
	modules source.Modules
}

// Module implements source.Modules.
func (w within) Module(path, version string) (fs.FS, error) {
	if w.ctx.Err() != nil {
		return nil, &registry.Error{Code: registry.TimedOut, Problem: "the modules of the package have taken too long together"}
	}
	return w.modules.Module(path, version)
}

// later has no modules: what needs one is fetched beside the reconciles.
type later struct{}

var errLater = errors.New("it is fetched later")

// Module implements source.Modules.
func (later) Module(string, string) (fs.FS, error) { return nil, errLater }
