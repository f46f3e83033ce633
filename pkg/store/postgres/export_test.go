package postgres

import "time"

// DialPatiently is Dial with time-outs for a machine that is busy with other tests.
func DialPatiently(o Options) (*Store, error) { return dialPatiently(o, read("clock")) }

func dialPatiently(o Options, clock string) (*Store, error) {
	const patience = 30 * time.Second
	o.Timeout = patience
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	config.ConnConfig.ConnectTimeout = patience
	return newStore(config, newProgram(clock), patience)
}
