package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ociref"
	"operetta.dev/engine/signature"
)

const (
	// maxSignatures is how many signatures of an artifact are looked at: whoever may push to a repository can put more there.
	maxSignatures = 50
	// maxReferrers is how many entries of the list of what refers to an artifact are looked at. Most of them are no signatures, and cost no request.
	maxReferrers = 10_000
	// maxSignature bounds each of them, in bytes.
	maxSignature = 256 << 10
)

// Verified is an artifact whose signatures were checked against those that are required.
type Verified struct {
	// Repository is where it is, and Digest that of its manifest.
	Repository string `json:"repository"`
	Digest     string `json:"digest"`
	// Keys are the IDs of the keys that have signed it, as far as some were demanded.
	Keys []string `json:"keys,omitempty"`
}

// requiredKeys returns the keys that a repository needs: one of each has to have signed. There are those of the policy
// and those of the caller, so that neither weakens the other. It errors if the policy refuses the repository.
func (c *Client) requiredKeys(repository string, own signature.Keys) ([]signature.Keys, error) {
	var out []signature.Keys
	switch demand, keys := c.options.Policy.ForRepository(repository); demand {
	case signature.Nothing:
	case signature.Signed:
		out = append(out, keys)
	case signature.Refused:
		return nil, errorf(NotAllowed, "no rule of --require-signatures is about %s", repository)
	}
	if len(own) > 0 {
		out = append(out, own)
	}
	return out, nil
}

// CheckVerified errors if an artifact that was verified earlier would not be accepted now. It asks no registry.
func (c *Client) CheckVerified(v Verified, own signature.Keys) error {
	demands, err := c.requiredKeys(v.Repository, own)
	if err != nil {
		return err
	}
	for _, keys := range demands {
		if !slices.ContainsFunc(v.Keys, keys.Has) {
			return errorf(BadSignature, "%s of %s was not verified by the keys that are demanded now", v.Digest, v.Repository)
		}
	}
	return nil
}

// CheckUnsigned errors if the policy does not accept files from objects of the cluster, which are never signed.
func (c *Client) CheckUnsigned() error {
	if c.options.Policy.OfObjects() == signature.Refused {
		return errorf(NotAllowed, "--require-signatures allows only content from registries, because nobody signs an object of the cluster")
	}
	return nil
}

// RecordsVerification reports whether the signatures with which contents were accepted are recorded.
func (c *Client) RecordsVerification(own signature.Keys) bool {
	return c.options.Policy != nil || len(own) > 0
}

// A verification looks for signatures of one artifact.
type verification struct {
	from ociregistry.Interface
	// repository is the name of the repository in its registry.
	repository string
	artifact   signature.Artifact
	// demands are what nobody has signed yet, and keys are those that have signed.
	demands []signature.Keys
	keys    []string
	// seen is how many signatures were looked at, and wrong how many were worth nothing, by why.
	seen  int
	wrong map[signature.Result]int
}

// verify returns which keys have signed an artifact. It errors with an Error if one of the demands is not met.
func verify(ctx context.Context, from ociregistry.Interface, ref ociref.Reference, digest string, demands []signature.Keys) (*Verified, error) {
	of := signature.Artifact{Repository: ref.Host + "/" + ref.Repository, Digest: digest}
	v := &verification{from: from, repository: ref.Repository, artifact: of, demands: slices.Clone(demands), wrong: map[signature.Result]int{}}
	for _, look := range []func(context.Context) error{v.byTag, v.byReferrers} {
		if v.done() {
			break
		}
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	if len(v.demands) > 0 {
		return nil, v.refusal()
	}
	return &Verified{Repository: of.Repository, Digest: digest, Keys: v.keys}, nil
}

// done reports whether no more signatures are looked at.
func (v *verification) done() bool { return len(v.demands) == 0 || v.seen >= maxSignatures }

// refusal says why an artifact is not accepted.
func (v *verification) refusal() error {
	if v.seen == 0 {
		return errorf(Unsigned, "it has no signature of %s", v.artifact.Digest)
	}
	var why []string
	for result := signature.OtherKey; result < signature.NoSignature; result++ {
		if n := v.wrong[result]; n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n, result))
		}
	}
	if len(why) == 0 { // each is by the keys of one demand
		why = []string{"none is by one of the other keys that are demanded"}
	}
	if v.seen >= maxSignatures {
		why = append(why, fmt.Sprintf("no more than %d are looked at", maxSignatures))
	}
	return errorf(BadSignature, "no signature of %s is accepted: %s", v.artifact.Digest, strings.Join(why, ", "))
}

// judge notes what one signature is worth.
func (v *verification) judge(by func(signature.Keys) (signature.Result, string)) {
	worst := signature.Valid
	var left []signature.Keys
	for _, keys := range v.demands {
		result, id := by(keys)
		if result == signature.NoSignature {
			return
		}
		if result == signature.Valid {
			if !slices.Contains(v.keys, id) {
				v.keys = append(v.keys, id)
			}
			continue
		}
		left, worst = append(left, keys), result
	}
	v.seen++
	if len(left) == len(v.demands) {
		v.wrong[worst]++
	}
	v.demands = left
}

// unreadable notes a signature that cannot be read.
func (v *verification) unreadable() {
	v.seen++
	v.wrong[signature.Malformed]++
}

// byTag looks at the signatures below the tag that cosign gives them.
func (v *verification) byTag(ctx context.Context) error {
	r, err := v.from.GetTag(ctx, v.repository, v.artifact.Tag())
	switch {
	case isAbsent(err):
		return nil
	case isContent(err):
		v.unreadable()
		return nil
	case err != nil:
		return err
	}
	m, ok := readManifest(r)
	if !ok {
		v.unreadable()
		return nil
	}
	for _, layer := range m.Layers {
		if v.done() {
			return nil
		}
		made, is := layer.Annotations[signature.Annotation]
		if layer.MediaType != signature.PayloadType || !is {
			continue
		}
		text, err := v.blob(ctx, layer)
		if err != nil {
			return err
		}
		if text == nil || len(made) > maxSignature {
			v.unreadable()
			continue
		}
		v.judge(func(keys signature.Keys) (signature.Result, string) { return keys.Payload(v.artifact, text, made) })
	}
	return nil
}

// byReferrers looks at the bundles that refer to the artifact.
func (v *verification) byReferrers(ctx context.Context) error {
	listed, fetched := 0, 0
	for desc, err := range v.from.Referrers(ctx, v.repository, ociregistry.Digest(v.artifact.Digest), "") {
		if isAbsent(err) || isUnsupported(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if listed++; v.done() || listed > maxReferrers || fetched >= maxSignatures {
			return nil
		}
		if desc.ArtifactType != "" && !strings.HasPrefix(desc.ArtifactType, signature.BundleType) {
			continue
		}
		fetched++ // it may be no signature all the same: the list need not say what it is
		if err := v.referrer(ctx, desc); err != nil {
			return err
		}
	}
	return nil
}

// referrer looks at what one manifest says that refers to the artifact.
func (v *verification) referrer(ctx context.Context, desc ociregistry.Descriptor) error {
	r, err := v.from.GetManifest(ctx, v.repository, desc.Digest)
	switch {
	case isAbsent(err), isContent(err):
		return nil
	case err != nil:
		return err
	}
	m, ok := readManifest(r)
	if !ok || len(m.Layers) != 1 || !strings.HasPrefix(m.Layers[0].MediaType, signature.BundleType) {
		return nil
	}
	text, err := v.blob(ctx, m.Layers[0])
	if err != nil {
		return err
	}
	if text == nil {
		v.unreadable()
		return nil
	}
	v.judge(func(keys signature.Keys) (signature.Result, string) { return keys.Bundle(v.artifact, text) })
	return nil
}

// blob returns what a layer has, or nil if it is no signature that can be read.
func (v *verification) blob(ctx context.Context, layer ociregistry.Descriptor) ([]byte, error) {
	if layer.Size > maxSignature {
		return nil, nil
	}
	r, err := v.from.GetBlob(ctx, v.repository, layer.Digest)
	switch {
	case isAbsent(err), isContent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxSignature+1))
	if len(text) > maxSignature {
		return nil, err
	}
	return text, err
}

// readManifest reads a manifest, and reports whether it is one.
func readManifest(r ociregistry.BlobReader) (ociregistry.Manifest, bool) {
	defer r.Close()
	var m ociregistry.Manifest
	data, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return m, err == nil
}

// isAbsent reports whether a registry has said that it does not have something.
func isAbsent(err error) bool {
	if errors.Is(err, ociregistry.ErrManifestUnknown) || errors.Is(err, ociregistry.ErrNameUnknown) || errors.Is(err, ociregistry.ErrBlobUnknown) {
		return true
	}
	answer, ok := errors.AsType[ociregistry.HTTPError](err)
	return ok && answer.StatusCode() == http.StatusNotFound
}

// isUnsupported reports whether a registry does not know what it was asked. It should say that it does not have it.
func isUnsupported(err error) bool {
	answer, ok := errors.AsType[ociregistry.HTTPError](err)
	return ok && slices.Contains([]int{http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotImplemented}, answer.StatusCode())
}

// isContent reports whether an error is about what a registry has sent, so that asking again is of no use.
func isContent(err error) bool {
	own, ok := errors.AsType[*Error](err)
	return ok && (own.Code == TooLarge || own.Code == DigestMismatch)
}
