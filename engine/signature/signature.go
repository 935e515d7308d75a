package signature

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	bundlev1 "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore/pkg/signature/payload"
	"google.golang.org/protobuf/encoding/protojson"
)

// An Artifact is what has to be signed.
type Artifact struct {
	// Repository is where it is, such as registry.example.com/example.com/operators.
	Repository string
	// Digest is that of its manifest.
	Digest string
}

// A Result says what a signature is worth.
type Result int

// The results.
const (
	// Valid: one of the keys has signed the artifact.
	Valid Result = iota
	// OtherKey: none of the keys has made it, or it was changed.
	OtherKey
	// OtherDigest: one of the keys has signed another artifact.
	OtherDigest
	// OtherRepository: one of the keys has signed the content for another repository, or for none.
	OtherRepository
	// Malformed: it cannot be read.
	Malformed
	// NoSignature: it is something else that was said about an artifact, such as what it contains.
	NoSignature
)

// resultTexts say what is wrong with signatures.
var resultTexts = [...]string{
	Valid:           "is valid",
	OtherKey:        "was made with another key",
	OtherDigest:     "is of another digest",
	OtherRepository: "is for another repository",
	Malformed:       "cannot be read",
	NoSignature:     "is something else than a signature",
}

// String says what is wrong with a signature.
func (v Result) String() string { return resultTexts[v] }

// What signatures and the bundles with them are in a registry.
const (
	// PayloadType is the media type of the layers below the tag of signatures, each of which is a payload.
	PayloadType = "application/vnd.dev.cosign.simplesigning.v1+json"
	// Annotation is the annotation of such a layer with its signature.
	Annotation = "dev.cosignproject.cosign/signature"
	// BundleType is how the media types of bundles begin; a version follows.
	BundleType = "application/vnd.dev.sigstore.bundle"
)

const (
	statementType  = "https://in-toto.io/Statement/"
	signPredicate  = "https://sigstore.dev/cosign/sign/v1"
	envelopeType   = "application/vnd.in-toto+json"
	digestFunction = "sha256"
)

// Tag returns the tag of the signatures of an artifact.
func (a Artifact) Tag() string { return strings.ReplaceAll(a.Digest, ":", "-") + ".sig" }

// Payload judges a signature of a payload, which is base64, and returns the ID of the key that has made it.
func (k Keys) Payload(of Artifact, text []byte, made string) (Result, string) {
	raw, err := base64.StdEncoding.DecodeString(made)
	if err != nil || len(raw) == 0 {
		return Malformed, ""
	}
	id := k.signer(text, raw)
	if id == "" {
		return OtherKey, ""
	}
	var p payload.SimpleContainerImage
	if err := json.Unmarshal(text, &p); err != nil || p.Critical.Type != payload.CosignSignatureType {
		return Malformed, ""
	}
	switch {
	case p.Critical.Image.DockerManifestDigest != of.Digest:
		return OtherDigest, ""
	case !sameRepository(p.Critical.Identity.DockerReference, of.Repository):
		return OtherRepository, ""
	}
	return Valid, id
}

// sameRepository reports whether a signature is for a repository: it names that, or a tag or a digest there.
func sameRepository(signed, repository string) bool {
	want, err := name.NewRepository(repository)
	if err != nil {
		return false
	}
	got, err := name.ParseReference(signed)
	return err == nil && got.Context().Name() == want.Name()
}

// Bundle judges a bundle of sigstore, and returns the ID of the key that has made its signature. A bundle names no
// repository.
func (k Keys) Bundle(of Artifact, text []byte) (Result, string) {
	var b bundlev1.Bundle
	if err := protojson.Unmarshal(text, &b); err != nil || !strings.HasPrefix(b.GetMediaType(), BundleType) {
		return Malformed, ""
	}
	envelope := b.GetDsseEnvelope()
	if envelope == nil || envelope.GetPayloadType() != envelopeType {
		return NoSignature, ""
	}
	var s statement
	if err := json.Unmarshal(envelope.GetPayload(), &s); err != nil {
		return Malformed, ""
	}
	if !strings.HasPrefix(s.Type, statementType) || s.PredicateType != signPredicate {
		return NoSignature, ""
	}
	id := ""
	for _, made := range envelope.GetSignatures() {
		if id = k.signer(dsse.PAE(envelope.GetPayloadType(), envelope.GetPayload()), made.GetSig()); id != "" {
			break
		}
	}
	switch {
	case id == "":
		return OtherKey, ""
	case !s.names(of.Digest):
		return OtherDigest, ""
	}
	return Valid, id
}

// A statement says something about some artifacts, as in-toto describes it.
type statement struct {
	Type          string    `json:"_type"`
	PredicateType string    `json:"predicateType"`
	Subject       []subject `json:"subject"`
}

type subject struct {
	Digest map[string]string `json:"digest"`
}

// names reports whether a statement is about an artifact.
func (s statement) names(digest string) bool {
	return slices.ContainsFunc(s.Subject, func(of subject) bool { return digest == digestFunction+":"+of.Digest[digestFunction] })
}
