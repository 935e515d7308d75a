package registrytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"cuelabs.dev/go/oci/ociregistry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// A Key signs as cosign does, without its code: what it makes is compared with what cosign makes.
type Key struct {
	// Public and Private are the key in PEM form. The private one is not encrypted.
	Public, Private string

	signer crypto.Signer
}

// NewKey returns a key of the kind that cosign generate-key-pair makes.
func NewKey(tb testing.TB) Key {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return KeyOf(tb, key)
}

// KeyOf returns a key that signs by SHA-256.
func KeyOf(tb testing.TB, signer crypto.Signer) Key {
	tb.Helper()
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		tb.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		tb.Fatal(err)
	}
	return Key{
		Public:  string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		Private: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		signer:  signer,
	}
}

// Sign returns the signature of a text.
func (k Key) Sign(tb testing.TB, text []byte) []byte {
	tb.Helper()
	sum := sha256.Sum256(text)
	out, err := k.signer.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// Payload returns what cosign signs of an artifact: repository is with its registry, and may be another one.
func Payload(repository, digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, repository, digest)
}

// A Signature is a text with its signature, both as they are, so that a test can make them wrong.
type Signature struct {
	Text []byte
	Made string
}

// Signed returns the signature of a text by a key.
func (k Key) Signed(tb testing.TB, text []byte) Signature {
	tb.Helper()
	return Signature{text, base64.StdEncoding.EncodeToString(k.Sign(tb, text))}
}

// SignTag puts signatures below the tag of those of an artifact, in place of others.
func (r *Registry) SignTag(tb testing.TB, repo, signed string, all ...Signature) {
	tb.Helper()
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: r.put(tb, repo, ocispec.MediaTypeImageConfig, []byte("{}")), Layers: []ocispec.Descriptor{}}
	m.SchemaVersion = 2
	for _, s := range all {
		layer := r.put(tb, repo, "application/vnd.dev.cosign.simplesigning.v1+json", s.Text)
		layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": s.Made}
		m.Layers = append(m.Layers, layer)
	}
	r.Manifest(tb, repo, strings.ReplaceAll(signed, ":", "-")+".sig", ocispec.MediaTypeImageManifest, m)
}

// Sign has a key sign an artifact, as operetta push does it.
func (r *Registry) Sign(tb testing.TB, k Key, repo, signed string) {
	tb.Helper()
	r.SignTag(tb, repo, signed, k.Signed(tb, Payload(r.Host+"/"+repo, signed)))
}

// Bundle is a bundle of sigstore with a statement that a key has signed.
func (k Key) Bundle(tb testing.TB, predicate, subject string) []byte {
	tb.Helper()
	const payloadType = "application/vnd.in-toto+json"
	statement := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`, strings.TrimPrefix(subject, "sha256:"), predicate)
	message := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(statement), statement)
	out, err := json.Marshal(map[string]any{
		"mediaType":            "application/vnd.dev.sigstore.bundle.v0.3+json",
		"verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "any"}},
		"dsseEnvelope": map[string]any{
			"payload": []byte(statement), "payloadType": payloadType,
			"signatures": []any{map[string]any{"sig": k.Sign(tb, message)}},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// SignPredicate is what a statement says about an artifact that is signed.
const SignPredicate = "https://sigstore.dev/cosign/sign/v1"

// Refer has a bundle refer to an artifact.
func (r *Registry) Refer(tb testing.TB, repo, signed string, bundle []byte) {
	tb.Helper()
	r.ReferAs(tb, repo, signed, "application/vnd.dev.sigstore.bundle.v0.3+json", bundle)
}

// ReferAs has a text of any type refer to an artifact, such as a list of what is in it.
func (r *Registry) ReferAs(tb testing.TB, repo, signed, mediaType string, text []byte) {
	tb.Helper()
	desc, err := r.Store.ResolveManifest(tb.Context(), repo, ociregistry.Digest(signed))
	if err != nil {
		tb.Fatal(err)
	}
	m := ocispec.Manifest{
		MediaType: ocispec.MediaTypeImageManifest, ArtifactType: mediaType, Subject: &desc,
		Config: r.put(tb, repo, ocispec.MediaTypeEmptyJSON, []byte("{}")), Layers: []ocispec.Descriptor{r.put(tb, repo, mediaType, text)},
	}
	m.SchemaVersion = 2
	data, err := json.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := r.Store.PushManifest(tb.Context(), repo, "", data, ocispec.MediaTypeImageManifest); err != nil {
		tb.Fatal(err)
	}
}

// put stores a blob.
func (r *Registry) put(tb testing.TB, repo, mediaType string, data []byte) ocispec.Descriptor {
	tb.Helper()
	return r.Blob(tb, repo, ociregistry.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}, data)
}
