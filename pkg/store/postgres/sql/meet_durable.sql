    SELECT $columns INTO s FROM weir.counters_durable c WHERE c.key = counter FOR UPDATE;
    IF NOT FOUND THEN
        IF op <> peek THEN
            PERFORM pg_advisory_xact_lock(hashtextextended(counter, 0)); -- as enter does
        END IF;
        SELECT $columns INTO s FROM weir.counters_durable c WHERE c.key = counter FOR UPDATE;
    END IF;
    IF FOUND THEN
        SELECT c.since INTO known FROM weir.counters_durable c WHERE c.key = counter;
    ELSE
        SELECT c.* INTO s FROM weir.counters c WHERE c.key = counter FOR UPDATE;
        moves := FOUND;
        IF NOT moves THEN
            s := ROW(counter, 0, 0, 0, 0, 0, 0, 0, 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}',
                NULL, NULL, NULL, NULL, NULL);
        END IF;
        known := weir.before$build(counter, moves, op <> peek AND s.generation <= generation, weir.clock$build(), born);
        IF op = peek OR s.generation > generation THEN
            moves := false; -- nor does a caller that is behind
        ELSE
            is_new := NOT moves;
            DELETE FROM weir.counters c WHERE c.key = counter;
            IF is_new THEN
                s.keep_until := weir.expected$build(algorithm, rates, lifetime, weir.clock$build());
            END IF;
            INSERT INTO weir.counters_durable (key, since, keep_until) VALUES (counter, known, s.keep_until);
        END IF;
    END IF;
