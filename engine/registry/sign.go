package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"cuelabs.dev/go/oci/ociregistry"
	"cuelabs.dev/go/oci/ociregistry/ociref"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"operetta.dev/engine/signature"
)

// Sign signs the artifact with a digest that was pushed, as cosign sign --key does it: its signature is put beside those
// that it has, below a tag of their own. An artifact that the key has signed stays as it is. It errors with an Error.
func (c *Client) Sign(ctx context.Context, p *Package, to ociref.Reference, pushed string, signer *signature.Signer) error {
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	target, err := c.openAsUser(to.Host, p.Version)
	if err == nil {
		err = sign(ctx, checked{target}, to, signature.Artifact{Repository: to.Host + "/" + to.Repository, Digest: pushed}, signer)
	}
	if err != nil {
		return of(to.Host, causedBy(ctx, err))
	}
	return nil
}

func sign(ctx context.Context, target ociregistry.Interface, to ociref.Reference, of signature.Artifact, signer *signature.Signer) error {
	present := &verification{from: target, repository: to.Repository, artifact: of, demands: []signature.Keys{{signer.Key}}, wrong: map[signature.Result]int{}}
	if err := present.byTag(ctx); err != nil || len(present.demands) == 0 {
		return err
	}
	m, err := signatures(ctx, target, to.Repository, of)
	if err != nil {
		return err
	}
	text, made, err := signer.Sign(ctx, of)
	if err != nil {
		return fmt.Errorf("signing %s: %w", of.Digest, err)
	}
	layer := describe(signature.PayloadType, text)
	layer.Annotations = map[string]string{signature.Annotation: made}
	m.Layers = append(m.Layers, layer)
	if _, err := target.PushBlob(ctx, to.Repository, layer, bytes.NewReader(text)); err != nil {
		return err
	}
	config, err := configOf(m.Layers)
	if err != nil {
		return err
	}
	m.Config = describe(ocispec.MediaTypeImageConfig, config)
	if _, err := target.PushBlob(ctx, to.Repository, m.Config, bytes.NewReader(config)); err != nil {
		return err
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = target.PushManifest(ctx, to.Repository, of.Tag(), data, m.MediaType)
	return err
}

// signatures returns the manifest with the signatures that an artifact has.
func signatures(ctx context.Context, target ociregistry.Interface, repository string, of signature.Artifact) (ocispec.Manifest, error) {
	out := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest}
	out.SchemaVersion = 2
	r, err := target.GetTag(ctx, repository, of.Tag())
	if isAbsent(err) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return out, errorf(Failed, "the tag %s has something else than signatures", of.Tag())
	}
	return out, nil
}

// configOf returns the configuration of the image that signatures are for a registry.
func configOf(layers []ocispec.Descriptor) ([]byte, error) {
	ids := make([]digest.Digest, len(layers))
	for i, layer := range layers {
		ids[i] = layer.Digest
	}
	return json.Marshal(ocispec.Image{RootFS: ocispec.RootFS{Type: "layers", DiffIDs: ids}})
}

func describe(mediaType string, data []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
}
