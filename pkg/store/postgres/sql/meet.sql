    LOOP
        SELECT c.* INTO s FROM weir.counters c WHERE c.key = counter FOR UPDATE;
        EXIT WHEN FOUND;
        SELECT $columns INTO s FROM weir.counters_durable c WHERE c.key = counter;
        EXIT WHEN FOUND AND (op = peek OR s.generation > generation); -- a caller that is behind moves nothing
        s := ROW(counter, 0, 0, 0, 0, 0, 0, 0, 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}',
            NULL, NULL, NULL, NULL, NULL);
        EXIT WHEN op = peek;
        s.keep_until := weir.expected$build(algorithm, rates, lifetime, weir.clock$build());
        INSERT INTO weir.counters (key, keep_until) VALUES (counter, s.keep_until) ON CONFLICT DO NOTHING; -- enter may move one here
        is_new := FOUND;
        EXIT WHEN is_new;
    END LOOP;
