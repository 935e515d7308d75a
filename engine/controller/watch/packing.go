package watch

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster/cbor"
	"operetta.dev/engine/ownership"
)

// maxPackedAtOnce is up to which length an object is packed without looking at all of it. What it takes as maps is
// below maxCachedSize then, but for lists of next to nothing, which no reader unpacks but the owner.
const maxPackedAtOnce = maxCachedSize / 4

// packedOrWhole returns an object as the cache of owned objects keeps it if that can be said without making maps of it, or
// else whole. The transform of the cache does the rest. It is not for kinds of which objects may run to their end.
func packedOrWhole(raw []byte) (*unstructured.Unstructured, error) {
	if len(raw) > maxPackedAtOnce {
		return whole(raw)
	}
	u, err := packedBytes(raw)
	if err != nil {
		return whole(raw)
	}
	if _, _, marked := ownership.ParseOwner(u.GetAnnotations()[ownership.OwnerAnnotation]); !marked {
		return whole(raw)
	}
	return u, nil
}

// A cut is a part of bytes.
type cut struct{ from, to int }

// A packing reads what a packed object has as it is.
type packing struct {
	*reader

	kept map[string]any
	sets []any
	cuts []cut
}

// packedBytes is packed for an object as an API server writes it.
func packedBytes(raw []byte) (*unstructured.Unstructured, error) {
	return readBytes(raw, func(r *reader) (*unstructured.Unstructured, error) {
		p := &packing{reader: r}
		return p.object(raw)
	})
}

// object reads an object of some bytes.
func (p *packing) object(raw []byte) (*unstructured.Unstructured, error) {
	out := map[string]any{}
	err := p.fields(func(name string) (err error) {
		switch name {
		case "apiVersion", "kind":
			out[name], err = p.sharedName()
		case "metadata":
			err = p.metadata()
		default:
			err = p.skip()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out["metadata"], out[packedField] = p.kept, without(raw, p.cuts)
	if slices.ContainsFunc(p.sets, func(set any) bool { return set != nil }) {
		out[fieldSetsField] = p.sets
	}
	return &unstructured.Unstructured{Object: out}, nil
}

// errNoText has an object decoded as a whole.
var errNoText = errors.New("what should be a text is none")

// sharedName reads a text that many objects have.
func (p *packing) sharedName() (string, error) {
	v, err := p.any()
	if err != nil {
		return "", err
	}
	text, is := v.(string)
	if !is {
		return "", errNoText
	}
	return unique.Make(text).Value(), nil
}

// without returns bytes with a value that is nothing in the place of parts. It has CBOR begin with a tag, by which unpackedRest tells it from
// what packed has made.
func without(raw []byte, parts []cut) string {
	size, at, begin, none := len(raw), 0, "", "null"
	if isCBOR(raw) {
		none = string([]byte{cbor.Null})
		if !bytes.HasPrefix(raw, []byte(selfDescribed)) {
			begin = selfDescribed
		}
	}
	size += len(begin)
	for _, part := range parts {
		size += len(none) - (part.to - part.from)
	}
	var out strings.Builder
	out.Grow(size)
	out.WriteString(begin)
	for _, part := range parts {
		out.Write(raw[at:part.from])
		out.WriteString(none)
		at = part.to
	}
	out.Write(raw[at:])
	return out.String()
}

func (p *packing) metadata() error {
	p.kept, p.sets = map[string]any{}, nil // of two, the last one counts
	return p.fields(func(name string) (err error) {
		switch {
		case name == "annotations" && p.shape() == mapShape:
			return p.annotations()
		case name == managedFieldsKey && p.shape() == listShape:
			p.sets = nil // of two, the last one counts
			return p.items(p.managedEntry)
		case slices.Contains(unpackedMetadata, name):
			p.kept[name], err = p.any()
			return err
		}
		return p.skip()
	})
}

func (p *packing) annotations() error {
	marks := map[string]any{}
	p.kept["annotations"] = marks
	return p.fields(func(name string) (err error) {
		if slices.Contains(unpackedMarks, name) {
			marks[name], err = p.any()
			return err
		}
		return p.skip()
	})
}

func (p *packing) managedEntry() error {
	var set any
	err := p.fields(func(name string) error {
		if name != fieldSetKey || p.shape() != mapShape {
			return p.skip()
		}
		v, length, err := p.fieldSet()
		set = v
		p.cuts = append(p.cuts, cut{p.offset() - length, p.offset()})
		return err
	})
	p.sets = append(p.sets, set)
	return err
}
