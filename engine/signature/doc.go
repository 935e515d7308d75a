// Package signature says whether an artifact of a registry was signed with one of some keys, and signs artifacts. The
// formats are those of cosign with keys:
//
//	key, err := signature.ParseKey(pem)                               a public key, such as cosign.pub
//	result, id := keys.Payload(artifact, payload, text)               a signature below the tag sha256-<digest>.sig
//	result, id := keys.Bundle(artifact, bundle)                       a bundle of sigstore that refers to the artifact
//	policy, err := signature.ParsePolicy(file)                        which repositories need which keys
//
// It is pure: it asks neither a registry nor a service. There are no certificates and no transparency log: who has
// one of the keys is believed, and nobody else.
package signature
