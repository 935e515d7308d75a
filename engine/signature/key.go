package signature

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"
)

// A Key is a public key.
type Key struct {
	// ID is the SHA-256 digest of the key in its DER form, as sha256:... .
	ID string

	// verifiers has one for each way in which versions of cosign sign with such a key.
	verifiers []signature.Verifier
}

// Keys are public keys, one of which must have signed an artifact. No artifact is signed by an empty list.
type Keys []Key

// ParseKey reads a public key in PEM form. The error does not quote it: it may be a private one.
func ParseKey(text string) (Key, error) {
	block, rest := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return Key{}, errors.New(`it is not a public key in PEM form, which begins with "-----BEGIN PUBLIC KEY-----"`)
	case len(bytes.TrimSpace(rest)) > 0:
		return Key{}, errors.New("it has more than one key; write each for itself")
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(text))
	if err != nil {
		return Key{}, errors.New("it is not a public key that can be read") // the cause may quote it
	}
	return newKey(public)
}

// minRSA is how many bits an RSA key has at least: fewer can be broken.
const minRSA = 2048

// newKey returns a public key.
func newKey(public crypto.PublicKey) (Key, error) {
	if factors, is := public.(*rsa.PublicKey); is && factors.N.BitLen() < minRSA {
		return Key{}, fmt.Errorf("it is an RSA key of %d bits; use one of %d or more", factors.N.BitLen(), minRSA)
	}
	der, err := cryptoutils.MarshalPublicKeyToDER(public)
	if err != nil {
		return Key{}, err
	}
	sum := sha256.Sum256(der)
	out := Key{ID: "sha256:" + hex.EncodeToString(sum[:])}
	// Which hash belongs to a key has changed with the versions of cosign, and so has whether that of Ed25519 is made
	// before. Only who has the private key can make a signature of any of these forms.
	loads := [][]signature.LoadOption{{options.WithHash(crypto.SHA256)}}
	if _, is := public.(ed25519.PublicKey); is {
		loads = append(loads, []signature.LoadOption{options.WithED25519ph()})
	}
	for _, o := range loads {
		v, err := signature.LoadVerifierWithOpts(public, o...)
		if err != nil {
			return Key{}, err
		}
		out.verifiers = append(out.verifiers, v)
	}
	usual, err := signature.LoadDefaultVerifier(public)
	if err != nil {
		return Key{}, err
	}
	out.verifiers = append(out.verifiers, usual)
	return out, nil
}

// ParseKeys reads public keys.
func ParseKeys(texts []string) (Keys, error) {
	var out Keys
	for i, text := range texts {
		key, err := ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if !out.Has(key.ID) {
			out = append(out, key)
		}
	}
	return out, nil
}

// Has reports whether a key with an ID is one of the keys.
func (k Keys) Has(id string) bool {
	return slices.ContainsFunc(k, func(key Key) bool { return key.ID == id })
}

// IDs returns the IDs of the keys, in their order.
func (k Keys) IDs() []string {
	out := make([]string, len(k))
	for i, key := range k {
		out[i] = key.ID
	}
	return out
}

// signer returns the ID of the key that has made a signature of a message, or "".
func (k Keys) signer(message, made []byte) string {
	for _, key := range k {
		for _, v := range key.verifiers {
			if v.VerifySignature(bytes.NewReader(made), bytes.NewReader(message)) == nil {
				return key.ID
			}
		}
	}
	return ""
}
