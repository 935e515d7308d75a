package signature

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

// A Signer signs artifacts.
type Signer struct {
	// Key is the public key.
	Key Key

	private signature.Signer
}

// What private keys in PEM form are called.
const (
	sigstoreKeyType = "ENCRYPTED SIGSTORE PRIVATE KEY"
	cosignKeyType   = "ENCRYPTED COSIGN PRIVATE KEY"
	plainKeyType    = "PRIVATE KEY"
)

// ErrPassword says that a private key is encrypted with another password.
var ErrPassword = errors.New("the password is wrong")

// ParseSigner reads a private key in PEM form: one that cosign has made, which the password decrypts, or one in the
// form of PKCS #8 that is not encrypted. No error quotes it.
func ParseSigner(text, password []byte) (*Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not a private key in PEM form")
	}
	der := block.Bytes
	switch block.Type {
	case sigstoreKeyType, cosignKeyType:
		var err error
		if der, err = encrypted.Decrypt(block.Bytes, password); err != nil {
			return nil, ErrPassword
		}
	case plainKeyType:
	default:
		return nil, fmt.Errorf("it is %q; a private key is %q, as cosign generate-key-pair makes it, or %q", block.Type, sigstoreKeyType, plainKeyType)
	}
	private, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("it is not a private key in the form of PKCS #8") // the cause may quote it
	}
	// With this hash, whatever the key is: it is the one by which cosign verifies unless it is told another one.
	out, err := signature.LoadSignerWithOpts(private, options.WithHash(crypto.SHA256))
	if err != nil {
		return nil, err
	}
	public, err := out.PublicKey()
	if err != nil {
		return nil, err
	}
	key, err := newKey(public)
	return &Signer{Key: key, private: out}, err
}

// Sign returns a payload about an artifact, and its signature in base64.
func (s *Signer) Sign(ctx context.Context, of Artifact) (text []byte, made string, err error) {
	image, err := name.NewDigest(of.Repository + "@" + of.Digest)
	if err != nil {
		return nil, "", err
	}
	if text, err = (payload.Cosign{Image: image}).MarshalJSON(); err != nil {
		return nil, "", err
	}
	raw, err := s.private.SignMessage(bytes.NewReader(text), options.WithContext(ctx))
	return text, base64.StdEncoding.EncodeToString(raw), err
}
