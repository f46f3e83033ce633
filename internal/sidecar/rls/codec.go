package rls

import (
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A codec is gRPC's for protobuf, and also reads calls whose strings are not UTF-8.
// Envoy sends the bytes of a header as they are, so a client chooses them, and gRPC's
// codec refuses such a call before any limit is asked. A client could thus escape every
// limit of an Envoy that passes undecided requests.
type codec struct {
	encoding.CodecV2

	undecodable func(error) // is called with what no codec reads
}

func newCodec(undecodable func(error)) codec {
	return codec{encoding.GetCodecV2(protocodec.Name), undecodable}
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	if in, isCall := v.(*ratelimitv3.RateLimitRequest); err != nil && isCall {
		proto.Reset(in)
		err = unmarshalRaw(data.Materialize(), in.ProtoReflect())
	}
	if err != nil {
		c.undecodable(err)
	}
	return err
}

// unmarshalRaw merges b into m like proto.Unmarshal, but keeps the bytes of every string
// as they are. A key is bytes to all that count it, as that of a request is, so that two
// keys stay two: whatever replaced the bytes could be sent in their place. It expects
// that m has neither maps nor lists of strings, as a call.
func unmarshalRaw(b []byte, m protoreflect.Message) error {
	for len(b) > 0 {
		number, kind, size := protowire.ConsumeField(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		if err := mergeField(b[:size], m, m.Descriptor().Fields().ByNumber(number), kind); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}

// mergeField merges one field. A field that neither is a string nor holds one is left
// to proto.
func mergeField(whole []byte, m protoreflect.Message, field protoreflect.FieldDescriptor, kind protowire.Type) error {
	if field == nil || kind != protowire.BytesType {
		return proto.UnmarshalOptions{Merge: true}.Unmarshal(whole, m.Interface())
	}
	_, _, tag := protowire.ConsumeTag(whole)
	content, _ := protowire.ConsumeBytes(whole[tag:])
	switch {
	case field.Kind() == protoreflect.StringKind:
		m.Set(field, protoreflect.ValueOfString(string(content)))
		return nil
	case field.Kind() != protoreflect.MessageKind:
		return proto.UnmarshalOptions{Merge: true}.Unmarshal(whole, m.Interface())
	case field.IsList():
		return unmarshalRaw(content, m.Mutable(field).List().AppendMutable().Message())
	default:
		return unmarshalRaw(content, m.Mutable(field).Message())
	}
}
