package frames

import (
	"iter"

	"golang.org/x/net/http2"
)

// maxSettings is how many settings a frame may have.
const maxSettings = 100

// apply takes over the settings of the peer. With other it does what is not the same for both.
func (p *peer) apply(f *http2.SettingsFrame, other func(http2.Setting) error) error {
	if f.NumSettings() > maxSettings {
		return protocolError
	}
	return f.ForeachSetting(func(s http2.Setting) error { //nolint:wrapcheck // of this package
		if err := s.Valid(); err != nil {
			return err //nolint:wrapcheck // it is one of the protocol
		}
		switch s.ID {
		case http2.SettingHeaderTableSize:
			p.encoder.SetMaxDynamicTableSize(s.Val)
		case http2.SettingMaxFrameSize:
			p.frame = int(s.Val)
		default:
			return other(s)
		}
		return nil
	})
}

// resize changes the window of each stream, whose halves are given.
func (p *peer) resize(to uint32, halves iter.Seq[*half]) error {
	by := int64(to) - p.initial
	p.initial = int64(to)
	for h := range halves {
		if h.window += by; h.window > maxWindow {
			return flowError
		}
	}
	if by > 0 {
		for h := range halves {
			h.pump()
		}
	}
	return nil
}

// widen adds to the window of the connection.
func (p *peer) widen(by int64) error {
	if p.window += by; p.window > maxWindow {
		return flowError
	}
	return nil
}
